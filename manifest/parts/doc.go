// Package parts divides work on a model's files among many machines, and joins what they
// did. No machine speaks with another: what a part has to do follows from the headers of
// the files and the number of parts, which [Divide] turns into a division that is the same
// everywhere.
//
// Who has done a part writes a [Record], the last thing of all: what the work is, and what
// came of this part of it. A [Join] takes in the records of all parts and refuses those of
// other work. Reading or writing the files themselves is the business of others.
package parts
