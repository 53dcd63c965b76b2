import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** An OpenSearch of one node: the arguments are settings, NAME=VALUE. */
class OpenSearchNode extends Node {
    OpenSearchNode(Settings s) {
        super(InternalSettingsPreparer.prepareEnvironment(s, Map.of(), null, () -> "test"),
            List.of(Netty4Plugin.class, CommonAnalysisPlugin.class), false);
    }

    public static void main(String[] args) throws Exception {
        Settings.Builder s = Settings.builder();
        for (String a : args) {
            s.put(a.substring(0, a.indexOf('=')), a.substring(a.indexOf('=') + 1));
        }
        new OpenSearchNode(s.build()).start();
        Thread.currentThread().join();
    }
}
