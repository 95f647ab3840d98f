package guard

import (
	"strings"
	"testing"
)

const id = "0123456789012345678901234567890123456789"

// TestT92Updates: a push of more refs than anybody makes, or of what git does not write, is refused before any of it is judged.
func TestT92Updates(t *testing.T) {
	t.Parallel()
	zero := strings.Repeat("0", 40)
	got, err := readUpdates(strings.NewReader(zero + " " + id + " refs/heads/a b\n" + id + " " + zero + " refs/heads/c\n"))
	if err != nil || len(got) != 2 || got[0] != (update{"refs/heads/a b", "", id}) || got[1] != (update{"refs/heads/c", id, ""}) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string]string{
		"many refs": strings.Repeat(id+" "+id+" refs/heads/x\n", maxUpdates+1), "two words": id + " refs/heads/x\n", "nothing": "\n",
		"a long name": id + " " + id + " refs/heads/" + strings.Repeat("x", 1<<17) + "\n",
	} {
		if got, err := readUpdates(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: %d updates", name, len(got))
		}
	}
}
