package redisbroker

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// needs are the commands that the scripts and the client call, as an ACL names them, and what stands behind the name when the
// right to a key or to the channel is asked for. A script whose user lacks one of them would stop in its middle, behind its first
// writes, so every connect asks for all of them. A test holds the list to the scripts and to the client's calls.
var needs = []string{
	"client|setname x", "eval s 0", "evalsha s 0", "exec", "multi", "ping", "scan 0", "script|load s", "time",
	"publish $channel h", "subscribe $channel",
	"del $key", "exists $key", "get $key", "incr $key", "incrby $key 1", "pexpire $key 1", "set $key v", "unlink $key",
	"hdel $key f", "hexists $key f", "hget $key f", "hgetall $key", "hincrby $key f 1", "hkeys $key", "hlen $key", "hmget $key f",
	"hrandfield $key", "hscan $key 0", "hset $key f v", "hsetnx $key f v",
	"lindex $key 0", "linsert $key before p v", "llen $key", "lpop $key", "lpush $key v", "lrange $key 0 1", "lrem $key 1 v", "rpush $key v",
	"sadd $key m", "smembers $key", "srem $key m",
	"xack $key w 1-1", "xadd $key * f v", "xclaim $key w r 0 1-1", "xdel $key 1-1", "xgroup|create $key w 0", "xgroup|delconsumer $key w r",
	"xgroup|destroy $key w", "xgroup|setid $key w 0", "xinfo|groups $key", "xinfo|stream $key", "xlen $key", "xpending $key w", "xrange $key - +",
	"xreadgroup group w r streams $key >", "xrevrange $key + -", "xsetid $key 1-1",
	"zadd $key 1 m", "zcard $key", "zcount $key 0 1", "zpopmin $key", "zrange $key 0 1", "zrangebyscore $key 0 1", "zrem $key m", "zrevrange $key 0 1",
	"zscore $key m", "zmscore $key m",
}

// clusterNeeds are what the client of a Cluster calls besides.
var clusterNeeds = []string{"asking", "cluster|info", "cluster|slots", "command"}

// wishes are commands without which connect and doctor see less: they say so, and work.
var wishes = []string{"config|get", "info"}

// askRights is not one of the scripts: it asks which rights the user of the connection lacks, and runs nothing. A command that may not be
// run is run then, since the text of the refusal tells what is missing: the command, the key or the channel. Each is asked for with all its
// words: a server that looks for a key where no word stands reads what is none of its business.
// KEYS none. ARGV 1, 2: a key of the namespace, one of a queue  3: the channel, then what is needed, as in needs, and what is wished, with
//
//	a ? in front: that is not run, since each refusal leaves a line in the server's ACL LOG.
//
// RETURNS the names of commands that may not be run, key 1, key 2 and channel; nil when the server has no ACL to ask.
const askRights = `if not redis.acl_check_cmd then return false end
local lacks, deaf = {}, false
local function missing(name, words, k)
  local r = redis.pcall(unpack(words))
  local text = type(r) == 'table' and r.err or ''
  if string.find(text, 'channel', 1, true) then
    deaf = true
    return 'channel'
  end
  if deaf and words[1] == 'subscribe' then return 'channel' end
  if not k or not string.find(text, '%f[%w]keys?%f[%W]') or string.find(text, 'run the', 1, true) then return name end
  return 'key ' .. k
end
for i = 4, #ARGV do
  local wish, name, behind = string.match(ARGV[i], '^(%??)(%S+)(.*)$')
  local keyed = string.find(behind, ' $key', 1, true)
  for k = 1, keyed and 2 or 1 do
    local words = {}
    for w in string.gmatch(string.gsub(name, '|', ' ') .. behind, '%S+') do
      if w == '$key' then w = ARGV[k] elseif w == '$channel' then w = ARGV[3] end
      words[#words + 1] = w
    end
    local ok, allowed = pcall(redis.acl_check_cmd, unpack(words))
    if not ok or not allowed then lacks[#lacks + 1] = wish ~= '' and name or missing(name, words, keyed and k) end
  end
end
return lacks`

// Rights are what a user of Redis must be allowed to do, or lacks.
type Rights struct {
	User     string
	Commands []string // as an ACL names them
	Keys     []string // patterns
	Channels []string
}

// LeastRights returns what the user of opt.URL needs for opt.Namespace, and nothing beyond. Errors: broker.ErrInvalid, broker.ErrName.
func LeastRights(opt Options) (Rights, error) {
	u, cluster, err := parseURL(opt.URL)
	if err != nil {
		return Rights{}, err
	}
	if err := broker.CheckNamespace(opt.Namespace); err != nil {
		return Rights{}, err
	}
	b := &Broker{ns: opt.Namespace, cluster: cluster}
	r := Rights{User: userOf(u), Keys: []string{keyPattern("{" + b.ns + "}:"), keyPattern("{" + b.ns + "/")}, Channels: []string{b.channels()}}
	for _, n := range b.needs(u.DB) {
		name, _, _ := strings.Cut(n, " ")
		r.Commands = append(r.Commands, name)
	}
	slices.Sort(r.Commands)
	return r, nil
}

// Wishes returns the commands without which connect and doctor see less, as an ACL names them.
func Wishes() []string { return slices.Clone(wishes) }

// userOf is the name of the user of a URL.
func userOf(u *redis.UniversalOptions) string {
	if u.Username == "" {
		return "default"
	}
	return u.Username
}

// Line is the command that gives these rights to the user.
func (r Rights) Line() string {
	words := []string{"ACL SETUSER", r.User}
	for _, c := range r.Commands {
		words = append(words, "+"+c)
	}
	for _, k := range r.Keys {
		words = append(words, "~"+k)
	}
	for _, c := range r.Channels {
		words = append(words, "&"+c)
	}
	return strings.Join(words, " ")
}

// String lists them.
func (r Rights) String() string {
	var parts []string
	for _, p := range []struct {
		noun string
		of   []string
	}{{"command", r.Commands}, {"key", r.Keys}, {"channel", r.Channels}} {
		if len(p.of) > 1 {
			p.noun += "s"
		}
		if len(p.of) > 0 {
			parts = append(parts, p.noun+" "+strings.Join(p.of, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (r Rights) empty() bool { return len(r.Commands)+len(r.Keys)+len(r.Channels) == 0 }

// keyPattern is the pattern of an ACL for all that begins with prefix. An ACL knows no blank in a pattern.
func keyPattern(prefix string) string { return strings.ReplaceAll(globEscape(prefix), " ", "?") + "*" }

// channels is the pattern of the channels of the namespace.
func (b *Broker) channels() string { return keyPattern("parley:" + b.ns + ":") }

// needs are the needs of this client.
func (b *Broker) needs(db int) []string {
	all := slices.Clone(needs)
	if b.cluster {
		all = append(all, clusterNeeds...)
	}
	if db != 0 {
		all = append(all, "select")
	}
	return all
}

// rightsCall is the call of askRights, with the wishes too.
func (b *Broker) rightsCall(ctx context.Context, db int) *redis.Cmd {
	args := []any{"eval", askRights, 0, b.nsKey("version"), "{" + b.ns + "/}:meta", b.channel()}
	for _, n := range b.needs(db) {
		args = append(args, n)
	}
	for _, w := range wishes {
		args = append(args, "?"+w)
	}
	return redis.NewCmd(ctx, args...)
}

// lacking sorts the answer of askRights. A server that has no ACL to ask lets everybody do all.
func (b *Broker) lacking(cmd *redis.Cmd, user string) (lacks Rights, err error) {
	v, err := cmd.StringSlice()
	if isNil(err) {
		return Rights{}, nil
	}
	lacks.User = user
	slices.Sort(v)
	for _, what := range slices.Compact(v) {
		switch what {
		case "key 1":
			lacks.Keys = append(lacks.Keys, keyPattern("{"+b.ns+"}:"))
		case "key 2":
			lacks.Keys = append(lacks.Keys, keyPattern("{"+b.ns+"/"))
		case "channel":
			lacks.Channels = append(lacks.Channels, b.channels())
		default:
			lacks.Commands = append(lacks.Commands, what)
		}
	}
	return lacks, err
}

// refuseRights is the error of a user that lacks rights.
func (b *Broker) refuseRights(lacks Rights, at string) error {
	return broker.ErrRights.With("user %s at %s lacks %s; add it: %s", lacks.User, at, lacks, lacks.Line())
}

// denial is the text with which a server refuses a call for want of a right; it differs between versions, and inside of scripts.
var denial = regexp.MustCompile(`NOPERM|The user executing the script can't`)

// deniedCommand is the command that such a text names.
var deniedCommand = regexp.MustCompile(`run the '([^']+)' command`)

// deniedBy is the error of a call that was refused for want of a right, as far as its text tells which.
func (b *Broker) deniedBy(op, msg string) error {
	user := "default"
	if u, _, err := parseURL(b.opt.URL); err == nil {
		user = userOf(u)
	}
	if m := deniedCommand.FindStringSubmatch(msg); m != nil {
		return b.refuseRights(Rights{User: user, Commands: m[1:]}, redact(b.opt.URL))
	}
	return broker.ErrRights.With("%s: user %s at %s: %s; runtime doctor --acl prints what it needs", op, user, redact(b.opt.URL), msg)
}

// isDenial reports whether a call was refused for want of a right, or since the user or its password is not valid any more.
func isDenial(err error) bool {
	return err != nil && (denial.MatchString(err.Error()) || badCredentials.MatchString(err.Error()))
}

// noticeDenials is the hook that tells WatchRights of a call that was refused for want of a right.
type noticeDenials struct{ denied chan<- struct{} }

func (h noticeDenials) look(err error) {
	if isDenial(err) {
		select {
		case h.denied <- struct{}{}:
		default: // it knows already
		}
	}
}

// DialHook is none.
func (h noticeDenials) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook looks at the answers of single commands.
func (h noticeDenials) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil {
			h.look(err)
		}
		return err
	}
}

// ProcessPipelineHook looks at the answers of pipelines and transactions.
func (h noticeDenials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				h.look(cmd.Err())
			}
		}
		return err
	}
}

// rightsEvery is how often WatchRights asks without having heard of a refusal: hints that are refused fail nothing, and are not heard of.
const rightsEvery = time.Minute

// WatchRights implements broker.RightsWatcher.
func (b *Broker) WatchRights(ctx context.Context) error {
	tick := time.NewTicker(rightsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.denied:
		case <-tick.C:
		}
		nodes, err := b.lookAtNodes(ctx)
		if isDenial(err) {
			return b.fault("ask for rights", err)
		}
		for i := range nodes {
			n := &nodes[i]
			if isDenial(n.err) {
				return b.fault("ask for rights", n.err)
			}
			if !n.lacks.empty() {
				return b.refuseRights(n.lacks, n.addr)
			}
		}
	}
}
