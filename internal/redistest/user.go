package redistest

import (
	"net/url"
	"testing"
)

// userPassword is that of every user made here.
const userPassword = "pw"

// User makes a user of the server who may do what words say, in the notation of ACL SETUSER ("+get", "~key", "&channel"), or
// adds them to one who is there, and returns the server's URL with that user.
func (s *Server) User(t testing.TB, name string, words ...string) string {
	t.Helper()
	args := []any{"ACL", "SETUSER", name, "on", ">" + userPassword}
	for _, w := range words {
		args = append(args, w)
	}
	if err := s.Client(t).Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("redistest: user %s: %v", name, err)
	}
	u := url.URL{Scheme: "redis", Host: s.Addr(), User: url.UserPassword(name, userPassword)}
	return u.String()
}
