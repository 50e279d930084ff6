// Package sbxml writes and reads the body of Service Broker's Error message and knows the names of the three system
// message types.
//
// The body is the one the Service Broker documentation shows: a declaration, a root element Error in the namespace
// http://schemas.microsoft.com/SQL/ServiceBroker, and in it Code, an integer, and Description, the text. It is written
// without white space between the elements:
//
//	<?xml version="1.0"?><Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker"><Code>12</Code><Description>Unknown cost center</Description></Error>
//
// Other writers differ (the namespace may end in /Error, the text element may be called Message), so reading looks at
// local names only. Codes above 0 come from applications, codes below 0 from the broker.
//
// EndDialog and DialogTimer messages have no body.
package sbxml
