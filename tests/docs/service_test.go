package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestServiceReports: the example for systemd writes its report to a folder that systemd makes, and
// does not remove when the service stops.
func TestServiceReports(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testlib.Root(), "docs/examples/tieralloc.service.conf"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if name == "Environment" {
			name, value, _ = strings.Cut(value, "=")
		}
		values[name] = value
	}
	folder := "/var/log/" + values["LogsDirectory"] + "/"
	if !strings.HasPrefix(values["TA_STATS_FILE"], folder) || values["RuntimeDirectory"] != "" {
		t.Errorf("TA_STATS_FILE=%s is not below %s, or lies in RuntimeDirectory=%s",
			values["TA_STATS_FILE"], folder, values["RuntimeDirectory"])
	}
}
