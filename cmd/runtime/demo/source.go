package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/cmd/runtime/pluginbuild"
	"parley/plugins/examples"
)

// build compiles an embedded example.
func (d *demo) build(ctx context.Context, name string) ([]byte, error) {
	start := time.Now()
	work, err := os.MkdirTemp("", "parley-demo-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	source, err := examples.Files.ReadFile(name + "/main.go")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(work, "main.go"), source, 0o600); err != nil {
		return nil, err
	}
	code, err := pluginbuild.Compile(ctx, work)
	if err != nil {
		return nil, err
	}
	d.say("  built %s: %d KiB of WebAssembly in %.1f s", name, len(code)>>10, time.Since(start).Seconds())
	return code, nil
}

// webhook is one body to send, with what must become of it, judged without the plugin.
type webhook struct {
	event      string
	body       []byte
	repository string // "": the body has none
}

// readWebhooks returns the real bodies.
func readWebhooks() ([]webhook, error) {
	files, err := fs.Glob(examples.Files, triagePlug+"/testdata/*.json")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("the webhook bodies are missing: %w", err)
	}
	var all []webhook
	for _, f := range files {
		body, err := examples.Files.ReadFile(f)
		if err != nil {
			return nil, err
		}
		event, _, _ := strings.Cut(filepath.Base(f), "__")
		w := webhook{event: event, body: body}
		var tree map[string]any
		if err := json.Unmarshal(body, &tree); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		if r, ok := tree["repository"].(map[string]any); ok {
			w.repository, _ = r["full_name"].(string)
		}
		all = append(all, w)
	}
	return all, nil
}

// commits is how many commits the oversized push holds.
const commits = 2000

// hugePush is a webhook that is in order and dearer than the plugin's fuel limit allows.
func hugePush() ([]byte, error) {
	list := make([]any, commits)
	for i := range list {
		list[i] = map[string]any{"id": fmt.Sprintf("%040x", i), "message": "update file", "author": map[string]any{"name": "bot"}}
	}
	return json.Marshal(map[string]any{
		"ref": "refs/heads/import", "repository": map[string]any{"full_name": "octo/import"}, "sender": map[string]any{"login": "bot"},
		"commits": list,
	})
}
