package broker

import (
	"errors"
	"strings"
	"testing"
)

func TestQueueNames(t *testing.T) {
	for _, c := range []struct {
		what, name string
		ok         bool
	}{
		{"a word", "orders", true},
		{"segments", "shop/eu/orders", true},
		{"a space inside", "my orders", true},
		{"letters beyond ASCII", "beställningar", true},
		{"260 characters", strings.Repeat("å", 260), true},
		{"a segment that only begins like a reserved one", "$TransferOrders", true},
		{"261 characters", strings.Repeat("å", 261), false},
		{"nothing", "", false},
		{"a leading slash", "/orders", false},
		{"a trailing slash", "orders/", false},
		{"an at sign", "a@b", false},
		{"a question mark", "a?b", false},
		{"a hash sign", "a#b", false},
		{"an asterisk", "a*b", false},
		{"an opening brace", "a{b", false},
		{"a closing brace", "a}b", false},
		{"a line end", "a\nb", false},
		{"a DEL", "a\x7fb", false},
		{"bytes that are not UTF-8", "a\xffb", false},
		{"a dead-letter segment", "a/$DeadLetterQueue", false},
		{"a dead-letter segment in another case", "a/$deadletterqueue/b", false},
		{"a transfer segment", "$TRANSFER/a", false},
		{"a subscription segment", "topic/subscriptions/s", false},
	} {
		refused(t, c.what, CheckQueueName(c.name), c.ok)
	}
}

func TestNamesOfOtherThings(t *testing.T) {
	refused(t, "a service name with slashes in front", CheckServiceName("//shop/Stock"), true)
	refused(t, "a service name of 256 characters", CheckServiceName(strings.Repeat("s", 256)), true)
	refused(t, "a service name of 257 characters", CheckServiceName(strings.Repeat("s", 257)), false)
	refused(t, "a type name of 128 characters", CheckTypeName("message type", strings.Repeat("t", 128)), true)
	refused(t, "a type name of 129 characters", CheckTypeName("message type", strings.Repeat("t", 129)), false)
	refused(t, "an empty type name", CheckTypeName("message type", ""), false)
	refused(t, "a namespace", CheckNamespace("shop"), true)
	refused(t, "a namespace of 65 characters", CheckNamespace(strings.Repeat("n", 65)), false)
	refused(t, "a namespace with a slash", CheckNamespace("a/b"), false)
	refused(t, "a namespace with a brace", CheckNamespace("a}b"), false)
}

func refused(t *testing.T, what string, err error, ok bool) {
	t.Helper()
	switch {
	case ok && err != nil:
		t.Errorf("%s: got %v, want it accepted", what, err)
	case !ok && !errors.Is(err, ErrName):
		t.Errorf("%s: got %v, want %v", what, err, ErrName)
	}
}

func TestTruncate(t *testing.T) {
	fits := strings.Repeat("ü", MaxReasonChars)
	for _, c := range []struct{ what, in, want string }{
		{"a short text stays", "no", "no"},
		{"as many characters as fit stay, however many bytes", fits, fits},
		{"invalid bytes are replaced", "a\xff\xfeb", "a\uFFFDb"},
		{"a zero byte is replaced", "a\x00b", "a\uFFFDb"},
	} {
		if got := Truncate(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

func TestTruncateMarksACut(t *testing.T) {
	in := strings.Repeat("ü", MaxReasonChars+1)
	got := Truncate(in)
	if n := len([]rune(got)); n != MaxReasonChars {
		t.Errorf("got %d characters, want %d", n, MaxReasonChars)
	}
	const mark = "… (truncated, 8194 bytes)"
	if !strings.HasSuffix(got, mark) {
		t.Errorf("got the end %q, want %q", got[len(got)-len(mark):], mark)
	}
	if again := Truncate(got); again != got {
		t.Error("a text that was cut is cut again")
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("a\xffb", 0)
	f.Add("ü", 5000)
	f.Fuzz(func(t *testing.T, s string, n int) {
		s = strings.Repeat(s, 1+max(0, n)%5000)
		if len(s) > 1<<20 {
			return
		}
		got := Truncate(s)
		if r := []rune(got); len(r) > MaxReasonChars || strings.ToValidUTF8(got, "") != got {
			t.Errorf("got %d characters, valid UTF-8: %v", len(r), strings.ToValidUTF8(got, "") == got)
		}
	})
}
