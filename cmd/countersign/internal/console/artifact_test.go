package console

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUpload: the file arrives whole, the token goes to the server that the runner names alone, and
// what goes wrong is told without the address.
func TestUpload(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"", "CreateArtifact", "PUT", "FinalizeArtifact", "no address", "not kept"} {
		t.Run(broken, func(t *testing.T) {
			t.Parallel()
			var kept []byte
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			const service = "POST /twirp/github.actions.results.api.v1.ArtifactService/"
			answer := func(method string, does func(w http.ResponseWriter, about map[string]any)) {
				mux.HandleFunc(service+method, func(w http.ResponseWriter, r *http.Request) {
					var about map[string]any
					if err := json.NewDecoder(r.Body).Decode(&about); err != nil || about["workflow_run_backend_id"] != "12" || about["name"] != "made" || r.Header.Get("Authorization") != "Bearer runtime-token" {
						t.Errorf("%s: %v of %q: %v", method, about, r.Header.Get("Authorization"), err)
					}
					if broken == method {
						http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusTemporaryRedirect)
						return
					}
					does(w, about)
				})
			}
			answer("CreateArtifact", func(w http.ResponseWriter, about map[string]any) {
				if broken != "no address" {
					io.WriteString(w, `{"ok":true,"signedUploadUrl":"`+server.URL+`/put?sig=signature&a=b"}`)
				} else {
					io.WriteString(w, `{"ok":true}`)
				}
			})
			mux.HandleFunc("PUT /put", func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" || r.URL.Query().Get("comp") != "block" || r.URL.Query().Get("sig") != "signature" {
					t.Errorf("put: %v %v", r.URL, r.Header)
				}
				if broken == "PUT" {
					panic(http.ErrAbortHandler)
				}
				kept, _ = io.ReadAll(r.Body)
				w.WriteHeader(http.StatusCreated)
			})
			answer("FinalizeArtifact", func(w http.ResponseWriter, about map[string]any) {
				if broken != "not kept" {
					io.WriteString(w, `{"ok":true}`)
				}
			})
			env := map[string]string{"ACTIONS_RESULTS_URL": server.URL + "/", "ACTIONS_RUNTIME_TOKEN": "runtime-token", "GITHUB_RUN_ID": "12"}
			err := NewAction(func(name string) string { return env[name] }, io.Discard).Upload(t.Context(), "made", "made.json", []byte("content\n"))
			if broken != "" {
				if err == nil || strings.Contains(err.Error(), "signature") || strings.Contains(err.Error(), "runtime-token") || strings.Contains(err.Error(), server.URL) {
					t.Errorf("%v", err)
				}
				return
			}
			archive, zipErr := zip.NewReader(bytes.NewReader(kept), int64(len(kept)))
			if err != nil || zipErr != nil || len(archive.File) != 1 || archive.File[0].Name != "made.json" {
				t.Fatalf("%v %v", err, zipErr)
			}
			f, err := archive.File[0].Open()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(f); string(got) != "content\n" || err != nil {
				t.Errorf("%q %v", got, err)
			}
		})
	}
	none := NewAction(func(string) string { return "" }, io.Discard)
	if err := none.Upload(t.Context(), "made", "made.json", nil); err == nil {
		t.Error("uploaded to nowhere")
	}
}
