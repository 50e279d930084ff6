// Package broker is Parley's vocabulary and its pure rules.
//
// It holds the nouns every other package speaks of (Message, Unit, Effect, Settlement, QueueSettings), the errors with
// their numbers and exit codes, the paths of sub-queues, and the decisions that need no store: the order inside a
// conversation, what a rollback leads to, which names are legal, which direction a contract allows. It imports the
// standard library only.
//
// The roles a broker plays are small interfaces (Sender, Reader, Receiver, Dialogs, Admin and so on). Package
// broker/redisbroker implements them on Redis Streams. A caller takes the role it needs, never the whole.
//
// Vocabulary. A queue holds messages. A plain message belongs to nobody; a message with a session id belongs to the
// session's conversation group; a dialog message belongs to a conversation, which belongs to a conversation group. An
// endpoint is one side of a conversation. A unit of work is one delivery attempt: the messages of one group, the
// handler's run, and every effect it staged; it commits or rolls back as a whole.
package broker
