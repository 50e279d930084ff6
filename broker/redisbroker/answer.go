package redisbroker

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// badCredentials is what a server answers to a user or password that it does not accept, or that is missing.
var badCredentials = regexp.MustCompile(`NOAUTH|WRONGPASS|ERR invalid password|ERR AUTH |failed to authenticate|unauthenticated (multi)?bulk length`)

// remedies are what a server may answer to any call because of what it is, or how it was addressed, with what to do about it; %s is the
// server's URL.
var remedies = []struct {
	says *regexp.Regexp
	err  *broker.Error
	text string
}{
	{regexp.MustCompile(`READONLY|read only replica`), broker.ErrUnreachable, replicaText},
	{regexp.MustCompile(`MASTERDOWN`), broker.ErrUnreachable, "%s is a replica that has lost its master, and does not answer: connect to the new master, or through Sentinel (redis-sentinel://)"},
	{regexp.MustCompile(`LOADING `), broker.ErrUnreachable, "Redis at %s is loading its data: try again when it has"},
	{regexp.MustCompile(`DENIED .*protected mode`), broker.ErrUnreachable, "Redis at %s is in protected mode and takes connections of its own machine only: give its user a password, or bind it to an address that only this machine reaches"},
	{regexp.MustCompile(`DB index is out of range|invalid DB index`), broker.ErrUnreachable, "Redis at %s has no such database: write a lower number behind the last / of the URL, or none"},
	{regexp.MustCompile(`SELECT is not allowed in cluster mode`), broker.ErrInvalid, "the server at %s is a Cluster, which has one database: use redis-cluster:// in the URL, and no number behind the last /"},
	{regexp.MustCompile(`^(MOVED|ASK) |CROSSSLOT`), broker.ErrInvalid, "the server at %s is a Cluster: use redis-cluster:// in the URL"},
	{regexp.MustCompile(`cluster support disabled|ERR unknown command .(CLUSTER|cluster)`), broker.ErrInvalid, "the server at %s is no Cluster: use redis:// in the URL"},
}

const replicaText = "%s is a replica, which cannot be written to: connect to its master, or through Sentinel (redis-sentinel://)"

func isReplica(at string) error { return broker.ErrUnreachable.With(replicaText, at) }

// remedied is the error of the catalogue for an answer of the server that has a remedy of its own, or nil.
func (b *Broker) remedied(op, msg string) error {
	at := redact(b.opt.URL)
	switch {
	case denial.MatchString(msg):
		return b.deniedBy(op, msg)
	case badCredentials.MatchString(msg):
		return broker.ErrUnreachable.With("%s: %s refuses the credentials; check the user and the password of --redis", op, at)
	}
	for _, r := range remedies {
		if r.says.MatchString(msg) && !(b.cluster && strings.HasPrefix(r.says.String(), "^(MOVED")) {
			return r.err.With("%s: "+r.text, op, at)
		}
	}
	return nil
}

// unreachable is the error of a connect that failed. When there was no answer that Redis gives, whoever listens at the address is asked
// who it is.
func (b *Broker) unreachable(ctx context.Context, err error) error {
	var answer redis.Error
	var known *broker.Error
	if ctx.Err() != nil || errors.As(err, &known) || errors.As(err, &answer) {
		return b.fault("connect", err)
	}
	u, _, perr := parseURL(b.opt.URL)
	if perr != nil {
		return b.fault("connect", err)
	}
	if e := b.remedied("connect", err.Error()); e != nil { // an answer inside of another error
		return e
	}
	if u.MasterName != "" {
		return broker.ErrUnreachable.With("connect: no Sentinel at %s tells of a master %q that answers; check the addresses and the name",
			strings.Join(u.Addrs, ", "), u.MasterName)
	}
	if text := whoAnswers(ctx, u.Addrs[0], u.TLSConfig != nil, err); text != "" {
		return broker.ErrUnreachable.With("connect: %s %s", redact(b.opt.URL), text)
	}
	return b.fault("connect", err)
}

// askWait is how long whoever listens has to say who it is.
const askWait = time.Second

// whoAnswers says what listens at addr and is no Redis that can be spoken to as the URL says, with the remedy; "" when nobody knows.
func whoAnswers(ctx context.Context, addr string, wantTLS bool, err error) string {
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return "is unknown: there is no host of that name; check the name in the URL"
	case errors.As(err, &untrusted):
		return "has a certificate that this machine does not trust: " + untrusted.Err.Error() + "; install its authority (or name it in SSL_CERT_FILE), and use the host name that it is made for"
	case strings.Contains(err.Error(), "tls: certificate required"), strings.Contains(err.Error(), "tls: bad certificate"):
		return "asks for a certificate of the client, which Parley does not have: set tls-auth-clients no, and use a user with a password"
	}
	said, open := banner(ctx, addr)
	switch {
	case !open:
		return ""
	case bytes.HasPrefix(said, []byte("-DENIED")):
		return "is in protected mode and takes connections of its own machine only: give its user a password, or bind it to an address that only this machine reaches"
	case bytes.HasPrefix(said, []byte("+PONG")), bytes.HasPrefix(said, []byte("-NOAUTH")), bytes.HasPrefix(said, []byte("-LOADING")):
		if wantTLS {
			return "speaks no TLS: use redis:// in the URL, or the port that has TLS"
		}
		return ""
	case bytes.HasPrefix(said, []byte("HTTP/")):
		return "is a web server, no Redis: check the port in the URL"
	case speaksTLS(ctx, addr):
		if !wantTLS {
			return "speaks TLS: use rediss:// in the URL, or the port without TLS"
		}
		return ""
	case len(said) > 0:
		line, _, _ := bytes.Cut(said, []byte("\n"))
		return "is no Redis: what listens there says " + quoted(line) + "; check the port in the URL"
	}
	return "accepts connections and says nothing: Redis may hang, or something else listens there"
}

// quoted shows the start of what a stranger said.
func quoted(line []byte) string {
	return strings.ToValidUTF8(strings.TrimSpace(strings.Map(printable, "“"+string(line[:min(len(line), 60)])+"”")), "?")
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// banner is what whoever listens at addr answers to a PING without TLS, and whether anybody listens.
func banner(ctx context.Context, addr string) (said []byte, open bool) {
	d := net.Dialer{Timeout: askWait}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(askWait))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return nil, true
	}
	buf := make([]byte, 256)
	n, _ := c.Read(buf) // an error and no bytes say as much as silence
	return buf[:n], true
}

// speaksTLS reports whether a TLS server listens at addr. Whom it belongs to does not matter here: nothing is sent to it.
func speaksTLS(ctx context.Context, addr string) bool {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: askWait}, Config: &tls.Config{InsecureSkipVerify: true}}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	c, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = c.Close()
		return true
	}
	return strings.Contains(err.Error(), "remote error: tls")
}
