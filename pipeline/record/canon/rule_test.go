package canon_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

func TestNewReport(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []canon.Violation
		want string
	}{
		{"none", nil, `{"ok":true}`},
		{"empty", []canon.Violation{}, `{"ok":true}`},
		{"no path", []canon.Violation{{RuleID: "AS9", Message: "m"}},
			`{"ok":false,"violations":[{"message":"m","rule_id":"AS9"}]}`},
		{"rule, then path, then as found",
			[]canon.Violation{
				{"SCHEMA", "$", "1", ""}, {"PS2", "b", "2", ""}, {"PS10", "z", "3", ""}, {"PS2", "", "4", ""},
				{"PS2", "b", "0", ""}, {"PS2", "\uffff", "5", ""}, {"PS2", "😀", "6", ""},
			},
			`{"ok":false,"violations":[` +
				`{"message":"3","path":"z","rule_id":"PS10"},` +
				`{"message":"4","rule_id":"PS2"},` +
				`{"message":"2","path":"b","rule_id":"PS2"},` +
				`{"message":"0","path":"b","rule_id":"PS2"},` +
				`{"message":"6","path":"😀","rule_id":"PS2"},` +
				"{\"message\":\"5\",\"path\":\"\uffff\",\"rule_id\":\"PS2\"}," +
				`{"message":"1","path":"$","rule_id":"SCHEMA"}]}`},
	} {
		got, err := canon.Marshal(canon.NewReport(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.name, got, err, c.want)
		}
	}
}
