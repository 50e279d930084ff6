package redisbroker

import (
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/broker"
)

// encodeRest makes the part of an entry's header that scripts never look into: message id|type|properties.
func encodeRest(m *broker.Outgoing, id string) string {
	typ := m.Type
	if typ == broker.TypeDefault {
		typ = ""
	}
	if len(m.Properties) == 0 {
		return escape(id) + "|" + escape(typ) + "|"
	}
	return escape(id) + "|" + escape(typ) + "|" + encodeProps(m.Properties)
}

func encodeProps(p map[string]string) string {
	keys := make([]string, 0, len(p))
	for k := range p {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var s strings.Builder
	for i, k := range keys {
		if i > 0 {
			s.WriteByte('&')
		}
		s.WriteString(escape(k))
		s.WriteByte('=')
		s.WriteString(escape(p[k]))
	}
	return s.String()
}

func decodeProps(s string) map[string]string {
	if s == "" {
		return nil
	}
	p := map[string]string{}
	for part := range strings.SplitSeq(s, "&") {
		k, v, _ := strings.Cut(part, "=")
		p[unescape(k)] = unescape(v)
	}
	return p
}

func msTime(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// header is an entry's header, split. Its fields are documented in docs/redis.md.
type header struct {
	owner, blen, cseq, expires, enqueued, kind, id, typ, props string
	dead                                                       []string // owner cseq seq reason desc at d p last group source
}

// parseHeader splits a header; ok is false when it is not one of ours.
func parseHeader(s string) (h header, ok bool) {
	var f [9]string
	for i := range 8 {
		j := strings.IndexByte(s, '|')
		if j < 0 {
			return h, false
		}
		f[i], s = s[:j], s[j+1:]
	}
	rest := ""
	f[8], rest, _ = strings.Cut(s, "|")
	h = header{f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], nil}
	if rest != "" {
		h.dead = strings.Split(rest, "|")
		if len(h.dead) < 11 {
			return h, false
		}
	}
	return h, len(h.kind) == 1 && (h.dead != nil || h.sound())
}

// kindBroken is the kind of a dead letter that was no message of ours: its body is all its raw fields.
const kindBroken = "M"

// sound reports whether every field of a message that is not dead has a form in which we write it.
func (h *header) sound() bool {
	dialog := validHandle(h.owner)
	if h.owner != "" && !dialog && !(strings.HasPrefix(h.owner, "s:") && len(h.owner) > 2 && wellEscaped(h.owner)) {
		return false
	}
	switch h.kind {
	case "S":
	case "D", "E", "T":
		if !dialog {
			return false
		}
	default:
		return false
	}
	sequenced := dialog && (h.kind == "S" || h.kind == "D")
	if !digits(h.enqueued) || h.expires != "" && !digits(h.expires) || sequenced && h.cseq == "" || h.cseq != "" && !(dialog && digits(h.cseq)) {
		return false
	}
	return wellEscaped(h.id) && wellEscaped(h.typ) && wellListed(h.props)
}

// digits reports whether s is a number as we write it.
func digits(s string) bool {
	if s == "" || len(s) > 18 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// wellEscaped reports whether s is UTF-8 when it is unescaped, and could have come from escape.
func wellEscaped(s string) bool {
	if strings.IndexByte(s, '%') >= 0 {
		for i := 0; i < len(s); i++ {
			if s[i] == '%' {
				if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
					return false
				}
				i += 2
			}
		}
		s = unescape(s)
	}
	return utf8.ValidString(s)
}

// wellListed reports whether s is a list of properties. Their values may be any bytes.
func wellListed(s string) bool {
	if s == "" {
		return true
	}
	for part := range strings.SplitSeq(s, "&") {
		k, v, ok := strings.Cut(part, "=")
		if !ok || k == "" || !wellEscaped(k) || strings.IndexByte(v, '%') >= 0 && escape(unescape(v)) != v {
			return false
		}
	}
	return true
}

// broken reports whether a dead letter was no message of ours. Until there was a kind for that they had no time.
func (h *header) broken() bool {
	return h.kind == kindBroken || h.enqueued == "" && h.dead[3] == broker.ReasonMalformedEnvelope
}

// decode turns an entry into a Message. ref is where it is stored, prefix and queue say whose it is.
func (b *Broker) decode(ref, head string, body []byte) (broker.Message, bool) {
	h, ok := parseHeader(head)
	if !ok {
		return broker.Message{Ref: ref, SequenceNumber: refSeq(ref), Body: body}, false
	}
	if n, err := strconv.Atoi(h.blen); err != nil || n != len(body) {
		return broker.Message{Ref: ref, SequenceNumber: refSeq(ref), Body: body}, false
	}
	m := broker.Message{
		Ref: ref, SequenceNumber: refSeq(ref), MessageID: unescape(h.id), Kind: broker.Kind(h.kind[0]), Type: unescape(h.typ),
		MessageSeq: -1, Priority: 5, EnqueuedAt: msTime(h.enqueued), ExpiresAt: msTime(h.expires), Properties: decodeProps(h.props), Body: body,
	}
	if m.Type == "" {
		m.Type = broker.TypeDefault
	}
	owner, cseq := h.owner, h.cseq
	if h.dead != nil {
		owner, cseq = h.dead[0], h.dead[1]
		m.SequenceNumber, _ = strconv.ParseInt(h.dead[2], 10, 64)
		m.Status = broker.StatusDead
		m.DeliveryCount, _ = strconv.Atoi(h.dead[6])
		m.PoisonCount, _ = strconv.Atoi(h.dead[7])
		m.Group = strings.TrimPrefix(unescape(h.dead[9]), "g:")
		m.Dead = &broker.DeadLetter{
			Reason: unescape(h.dead[3]), Description: unescape(h.dead[4]), At: msTime(h.dead[5]),
			LastError: unescape(h.dead[8]), Source: unescape(h.dead[10]),
		}
		if h.broken() {
			m.Kind = broker.KindApp
			m.Dead.Raw, _ = rawFields(body)
		}
	}
	if s, ok := strings.CutPrefix(owner, "s:"); ok {
		m.SessionID = unescape(s)
		m.Group = ""
	} else {
		m.Conversation = owner
	}
	if cseq != "" {
		m.MessageSeq, _ = strconv.ParseInt(cseq, 10, 64)
	}
	b.describe(&m, h.id == "")
	return m, true
}

// describe fills what is known without the entry: the id of a dialog message that has none, the validation letter.
func (b *Broker) describe(m *broker.Message, noID bool) {
	if noID && m.Conversation != "" {
		m.MessageID = m.Conversation + "/" + strconv.FormatInt(m.SequenceNumber, 10)
	}
	switch m.Kind {
	case broker.KindDialogTimer, broker.KindEndDialog:
		m.Validation = "E"
	case broker.KindError:
		m.Validation = "X"
	default:
		m.Validation = b.dir.letter(m.Type)
	}
}

func refSeq(ref string) int64 {
	s, _, _ := strings.Cut(ref, "/")
	s, _, _ = strings.Cut(s, "-")
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// lossy makes a text fit for storage: valid UTF-8, at most broker.MaxReasonChars characters, marked when it was cut.
func lossy(s string) string { return escape(broker.Truncate(s)) }
