//go:build servers

package httpapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkAnswers checks the document by the OpenAPI specification, and each answer by the schema of its path.
const checkAnswers = `
import json, sys
from openapi_spec_validator import validate
from jsonschema import Draft202012Validator
spec = json.load(open(sys.argv[1]))
validate(spec)
paths = sorted(spec["paths"], key=lambda p: "{" in p)
for line in open(sys.argv[2]):
    path, text = line.split("\t", 1)
    for p in paths:
        if p == path or "{" in p and path.startswith(p[:p.index("{")]):
            break
    else:
        sys.exit("no path " + path)
    schema = dict(spec["paths"][p]["get"]["responses"]["200"]["content"]["application/json"]["schema"])
    schema["components"] = spec["components"]
    Draft202012Validator(schema).validate(json.loads(text))
`

// The OpenAPI document is valid, and so are all answers by it.
func TestAnswersAreAsOpenAPISays(t *testing.T) {
	f := newFixture(t, nil)
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	var answers strings.Builder
	for _, path := range paths() {
		name, _, _ := strings.Cut(path, "?")
		if name == "/" {
			name = "/index"
		}
		w := f.request(t, "GET", path, "", "Accept", "application/json")
		answers.WriteString(name + ".json\t" + strings.ReplaceAll(w.Body.String(), "\n", " ") + "\n")
	}
	for name, text := range map[string]string{"spec.json": f.request(t, "GET", "/openapi.json", "").Body.String(), "answers": answers.String(), "check.py": checkAnswers} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("python3", "-m", "venv", filepath.Join(dir, "venv"))
	run(filepath.Join(dir, "venv/bin/pip"), "install", "-q", "openapi-spec-validator==0.7.2", "jsonschema")
	run(filepath.Join(dir, "venv/bin/python"), filepath.Join(dir, "check.py"), filepath.Join(dir, "spec.json"), filepath.Join(dir, "answers"))
}
