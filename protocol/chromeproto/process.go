package chromeproto

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// startTime limits the start of a browser.
	startTime = 30 * time.Second
	// closeTime is how long a browser may take to end by itself.
	closeTime = 3 * time.Second
	// maxStderr limits what is kept of its last words.
	maxStderr = 2 << 10
)

// A process is a running browser. Its profile is in a temporary folder.
type process struct {
	*pipe
	cmd    *exec.Cmd
	dir    string
	stderr *tail
	ended  chan struct{} // closed when the process has been waited for
	stop   sync.Once
}

// arguments are those of every browser: no request of its own, nothing around the proxy.
func arguments(dir, proxy, spki, userAgent string, sandbox bool) []string {
	args := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + dir,

		// Nothing goes around the proxy, not even to loopback; no name is looked up.
		"--proxy-server=http://" + proxy, "--proxy-bypass-list=<-loopback>",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--disable-quic", "--dns-prefetch-disable", "--no-pings",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--ignore-certificate-errors-spki-list=" + spki, "--user-agent=" + userAgent,

		// The browser itself requests nothing.
		"--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--no-startup-window",
		"--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions",
		"--disable-component-extensions-with-background-pages", "--disable-client-side-phishing-detection",
		"--disable-domain-reliability", "--disable-sync", "--metrics-recording-only", "--disable-field-trial-config",
		"--disable-breakpad", "--disable-crash-reporter", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=" + strings.Join([]string{
			"AsyncDns", "DnsOverHttps", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "Translate", "OptimizationHints",
			"MediaRouter", "DialMediaRouteProvider", "AutofillServerCommunication", "CertificateTransparencyComponentUpdater",
			"Prerender2", "SpeculationRulesPrefetchFuture", "SpareRendererForSitePerProcess", "BackForwardCache", "AcceptCHFrame",
			"InterestFeedContentSuggestions", "GlobalMediaControls", "PaintHolding",
		}, ","),

		// Pages behave as in the foreground, and ask for nothing.
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		"--disable-hang-monitor", "--disable-prompt-on-repost", "--deny-permission-prompts", "--disable-notifications",
		"--block-new-web-contents", "--mute-audio", "--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-back-forward-cache", "--disable-site-isolation-trials", "--window-size=1280,1024",
		"--js-flags=--max-old-space-size=256",
	}
	if !sandbox {
		args = append(args, "--no-sandbox")
	}
	return args
}

// start starts a browser and waits until it answers.
func start(ctx context.Context, path, proxy, spki, userAgent string, sandbox bool) (p *process, err error) {
	dir, err := os.MkdirTemp("", "recrawl-chrome-")
	if err != nil {
		return nil, err
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		ourOut.Close()
		os.RemoveAll(dir)
		return nil, err
	}
	p = &process{dir: dir, stderr: &tail{}, ended: make(chan struct{})}
	p.cmd = exec.Command(path, arguments(dir, proxy, spki, userAgent, sandbox)...)
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = closeTime
	p.cmd.Dir = dir
	ownGroup(p.cmd)
	err = p.cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		ourOut.Close()
		ourIn.Close()
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	p.pipe = newPipe(ourOut, ourIn)
	go func() {
		defer close(p.ended)
		p.cmd.Wait()
		killGroup(p.cmd) // those that it left
		<-p.gone
		ourIn.Close()
	}()
	sctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := p.call(sctx, "", "Browser.getVersion", nil, nil); err != nil {
		p.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("start %s: %v; its last words: %q", path, err, p.stderr.String())
	}
	return p, nil
}

// close ends the browser and all of its processes, and removes its folder. It may be called
// more than once, and waits each time.
func (p *process) close() {
	p.stop.Do(func() {
		p.send("", "Browser.close", nil, nil)
		select {
		case <-p.ended:
		case <-time.After(closeTime):
		}
		killGroup(p.cmd)
		p.w.Close()
		<-p.ended
		for range 50 { // its last processes may still write
			if err := os.RemoveAll(p.dir); err == nil || errors.Is(err, os.ErrNotExist) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	<-p.ended
}

// alive reports whether the browser runs.
func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	case <-p.ended:
		return false
	default:
		return true
	}
}

// A tail keeps the last bytes that are written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - maxStderr; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
