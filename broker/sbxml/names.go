package sbxml

import "strings"

// Names of the system message types as they are written. Their bodies are well-formed XML for Error and empty for the
// other two.
const (
	TypeError       = "http://schemas.microsoft.com/SQL/ServiceBroker/Error"
	TypeEndDialog   = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
	TypeDialogTimer = "http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer"
)

// Canonical returns the name under which a message type is stored and compared: the http:// form for a system type
// written with https://, and any other name unchanged, byte for byte.
func Canonical(name string) string {
	if rest, found := strings.CutPrefix(name, "https://"); found && IsSystem("http://"+rest) {
		return "http://" + rest
	}
	return name
}

// IsSystem reports whether a canonical name is that of a system message type.
func IsSystem(name string) bool {
	return name == TypeError || name == TypeEndDialog || name == TypeDialogTimer
}
