package workspace

import "testing"

// TestInspect: what is neither as it was nor as it should be.
func TestInspect(t *testing.T) {
	add, update, gone := files{"a": "2\n"}, files{"a": "1\n"}, files{}
	for _, c := range []struct {
		name          string
		before, after files
		disk          files
		want          State
	}{
		{"update: before", update, add, files{"a": "1\n"}, Before},
		{"update: after", update, add, files{"a": "2\n"}, After},
		{"update: other content", update, add, files{"a": "3\n"}, Other},
		{"update: other mode", update, add, files{"a": "+x 1\n"}, Other},
		{"update: gone", update, add, files{}, Other},
		{"update: a directory", update, add, files{"a/b": "1\n"}, Other},
		{"update: an empty directory", update, add, files{"a": "/"}, Other},
		{"T44 update: a link to the same bytes", update, add, files{"a": "-> b", "b": "1\n"}, Other},
		{"add: free", gone, add, files{}, Before},
		{"add: there already", gone, add, files{"a": "2\n"}, After},
		{"add: something else is there", gone, add, files{"a": "1\n"}, Other},
		{"add: an empty directory is there", gone, add, files{"a": "/"}, Before},
		{"add: empty directories are there", gone, add, files{"a/b/c": "/"}, Before},
		{"add: a directory of untracked files is there", gone, add, files{"a/b/c": "1\n"}, Other},
		{"T44 add: a dangling link is there", gone, add, files{"a": "-> nowhere"}, Other},
		{"T44 add: a link that leads outside is there", gone, add, files{"a": "-> ../outside"}, Other},
		{"delete: there", update, gone, files{"a": "1\n"}, Before},
		{"delete: gone", update, gone, files{}, After},
		{"delete: changed", update, gone, files{"a": "3\n"}, Other},
		{"delete: a link", update, gone, files{"a": "-> b", "b": "1\n"}, Other},
		{"T31 below a link", files{"x/a": "1\n"}, files{"x/a": "2\n"}, files{"x": "-> y", "y/a": "1\n"}, Other},
		{"T31 below a link that leads outside", gone, files{"x/a": "2\n"}, files{"x": "-> .."}, Other},
		{"below a file", gone, files{"x/a": "2\n"}, files{"x": "1\n"}, Other},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.disk.put(t, dir)
			inspect(t, open(t, dir), changes(c.before, c.after), c.want)
			same(t, dir, c.disk)
		})
	}
}
