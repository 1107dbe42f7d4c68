// Package architecture holds the import rules of the module as tests. It has no code of its own.
package architecture
