package lookup

import "github.com/countersign-dev/countersign/pipeline/record/canon"

// ShortID is how people are told of a transaction: the end of its id, which is what differs
// from one to the next. Commands take it.
func ShortID(id string) string { return id[max(0, len(id)-7):] }

// ShortIDs calls the transactions in a text as people are told of them.
func ShortIDs(text string) string { return wholeID().ReplaceAllString(text, "$1") }

var wholeID = canon.Regexp(`\btx_[0-9A-HJKMNP-TV-Z]{19}([0-9A-HJKMNP-TV-Z]{7})\b`)
