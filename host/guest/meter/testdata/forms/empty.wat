;; A module without anything gets every section the metering needs.
(module)
