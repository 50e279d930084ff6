// Package config reads the one YAML file that serve and apply take.
//
// The file is strict: an unknown key, a key given twice, a value of the wrong kind and a name the broker would refuse are
// errors that name the file and the line. [Parse] does all checks that need no broker; [File.Definitions] turns the file
// into what the broker's Apply takes, with every default filled in.
//
// sample.yaml in this folder lists every key with its default; a test reads it.
package config
