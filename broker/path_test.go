package broker

import "testing"

func TestParsePath(t *testing.T) {
	for _, c := range []struct {
		path    string
		want    Path
		printed string
	}{
		{"orders", Path{"orders", SubNone}, "orders"},
		{"orders/$DeadLetterQueue", Path{"orders", SubDeadLetter}, "orders/$DeadLetterQueue"},
		{"orders/$deadletterqueue", Path{"orders", SubDeadLetter}, "orders/$DeadLetterQueue"},
		{"orders/$Transfer/$DeadLetterQueue", Path{"orders", SubTransfer}, "orders/$Transfer/$DeadLetterQueue"},
		{"orders/$TRANSFER/$deadLETTERqueue", Path{"orders", SubTransfer}, "orders/$Transfer/$DeadLetterQueue"},
		{"orders/$Transfer", Path{"orders/$Transfer", SubNone}, "orders/$Transfer"},
		{"a/b/$DeadLetterQueue", Path{"a/b", SubDeadLetter}, "a/b/$DeadLetterQueue"},
		{"github/Subscriptions/pushes/$DeadLetterQueue", Path{"github/Subscriptions/pushes", SubDeadLetter}, "github/Subscriptions/pushes/$DeadLetterQueue"},
		{"", Path{"", SubNone}, ""},
		{"/$DeadLetterQueue", Path{"", SubDeadLetter}, "/$DeadLetterQueue"},
	} {
		got := ParsePath(c.path)
		if got != c.want || got.String() != c.printed {
			t.Errorf("%q: got %+v printed %q, want %+v printed %q", c.path, got, got, c.want, c.printed)
		}
	}
}

func TestFormattedPathsParseBack(t *testing.T) {
	sub := FormatSubscriptionPath("github", "pushes")
	for path, want := range map[string]Path{
		sub:                               {sub, SubNone},
		FormatDeadLetterPath(sub):         {sub, SubDeadLetter},
		FormatTransferDeadLetterPath(sub): {sub, SubTransfer},
	} {
		if got := ParsePath(path); got != want {
			t.Errorf("%q: got %+v, want %+v", path, got, want)
		}
	}
}
