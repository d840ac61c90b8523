package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
)

// A change puts another operator in place of one.
type change struct {
	file         string
	line, column int
	offset       int // bytes from the file's start
	from, to     string
}

func (c change) String() string {
	return fmt.Sprintf("%s:%d:%d: %q to %q", c.file, c.line, c.column, c.from, c.to)
}

// others names the operator that takes the place of each. Bounds move by one, and sums,
// products and conditions turn round.
var others = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&",
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*",
	token.SHL: ">>", token.SHR: "<<", token.AND: "|", token.OR: "&",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=",
	token.INC: "--", token.DEC: "++", token.NOT: "",
}

// fileChanges lists what can be changed in a file, in its order.
func fileChanges(file string) ([]change, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		return nil, err
	}
	var list []change
	ast.Inspect(tree, func(n ast.Node) bool {
		op, pos := operator(n)
		if to, known := others[op]; known {
			at := set.Position(pos)
			list = append(list, change{file, at.Line, at.Column, at.Offset, op.String(), to})
		}
		return true
	})
	slices.SortFunc(list, func(a, b change) int { return a.offset - b.offset })
	return list, nil
}

// operator returns a node's operator and its place.
func operator(n ast.Node) (token.Token, token.Pos) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return n.Op, n.OpPos
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			return n.Op, n.OpPos
		}
	case *ast.AssignStmt:
		return n.Tok, n.TokPos
	case *ast.IncDecStmt:
		return n.Tok, n.TokPos
	}
	return token.ILLEGAL, token.NoPos
}

// apply returns the changed file.
func (c change) apply() ([]byte, error) {
	data, err := os.ReadFile(c.file)
	if err != nil {
		return nil, err
	}
	return slices.Replace(data, c.offset, c.offset+len(c.from), []byte(c.to)...), nil
}
