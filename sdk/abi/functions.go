package abi

// Function is one import of module parley_v1.
type Function struct {
	Name   string
	Params string // names with types, in order: "index:i32 buf:i32 buf_len:i32"
	Result string // "i32" or "i64"
}

// Functions is every import of version 1, in the order of docs/abi.md.
var Functions = [...]Function{
	{"message_count", "", "i32"},
	{"message_field", "index:i32 field:i32 buf:i32 buf_len:i32", "i32"},
	{"message_number", "index:i32 number:i32 out:i32", "i32"},
	{"message_property", "index:i32 name:i32 name_len:i32 buf:i32 buf_len:i32", "i32"},
	{"message_properties", "index:i32 buf:i32 buf_len:i32", "i32"},
	{"message_body", "index:i32 buf:i32 buf_len:i32", "i32"},

	{"dialog_begin", "from:i32 from_len:i32 to:i32 to_len:i32 contract:i32 contract_len:i32 group:i32 group_len:i32 lifetime_ms:i64 buf:i32 buf_len:i32", "i32"},
	{"dialog_send", "conversation:i32 conversation_len:i32 type:i32 type_len:i32 props:i32 props_len:i32 body:i32 body_len:i32", "i32"},
	{"dialog_end", "conversation:i32 conversation_len:i32", "i32"},
	{"dialog_end_error", "conversation:i32 conversation_len:i32 code:i32 text:i32 text_len:i32", "i32"},
	{"dialog_move", "conversation:i32 conversation_len:i32 group:i32 group_len:i32", "i32"},
	{"dialog_retained", "conversation:i32 conversation_len:i32", "i32"},

	{"timer_after", "conversation:i32 conversation_len:i32 after_ms:i64", "i32"},
	{"timer_cron", "conversation:i32 conversation_len:i32 spec:i32 spec_len:i32 zone:i32 zone_len:i32", "i32"},
	{"timer_cancel", "conversation:i32 conversation_len:i32", "i32"},

	{"state_get", "key:i32 key_len:i32 buf:i32 buf_len:i32", "i32"},
	{"state_put", "key:i32 key_len:i32 value:i32 value_len:i32", "i32"},
	{"state_delete", "key:i32 key_len:i32", "i32"},

	{"queue_send", "queue:i32 queue_len:i32 type:i32 type_len:i32 id:i32 id_len:i32 session:i32 session_len:i32 props:i32 props_len:i32 body:i32 body_len:i32 delay_ms:i64 ttl_ms:i64", "i32"},
	{"topic_publish", "topic:i32 topic_len:i32 type:i32 type_len:i32 id:i32 id_len:i32 session:i32 session_len:i32 props:i32 props_len:i32 body:i32 body_len:i32 delay_ms:i64 ttl_ms:i64", "i32"},

	{"queue_peek", "queue:i32 queue_len:i32 from:i64 max:i32", "i32"},
	{"conversation_end", "queue:i32 queue_len:i32 conversation:i32 conversation_len:i32 code:i32 text:i32 text_len:i32", "i32"},
	{"queue_enable", "queue:i32 queue_len:i32 epoch:i64", "i32"},

	{"dead_letter", "reason:i32 reason_len:i32 description:i32 description_len:i32", "i32"},
	{"message_dead_letter", "index:i32 reason:i32 reason_len:i32 description:i32 description_len:i32", "i32"},
	{"message_defer", "index:i32", "i32"},
	{"retry_after", "pause_ms:i64", "i32"},
	{"fail", "text:i32 text_len:i32", "i32"},

	{"log", "level:i32 text:i32 text_len:i32", "i32"},
	{"config", "key:i32 key_len:i32 buf:i32 buf_len:i32", "i32"},
	{"now", "", "i64"},
	{"random", "buf:i32 buf_len:i32", "i32"},
	{"traceparent", "buf:i32 buf_len:i32", "i32"},
	{"span_start", "name:i32 name_len:i32", "i32"},
	{"span_end", "span:i32", "i32"},
}

// Lookup returns the function of that name.
func Lookup(name string) (Function, bool) {
	for _, f := range Functions {
		if f.Name == name {
			return f, true
		}
	}
	return Function{}, false
}
