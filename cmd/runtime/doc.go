// Command runtime is the only binary of Parley: it runs plugins, and it is what a person or a script works with a broker
// through.
//
// One file holds one command. A command reads its flags, calls one role of package broker through [client], and prints what
// it got through [printer]. What is printed as JSON is stated in fields.go and nowhere else. main only calls [run], and so do
// the tests.
package main
