// Package template fills in templates that stand in files of this program. They are written as those of
// text/template are, and parsed by its parser, and have of it: fields, variables of range, functions, if, with, range,
// define and template. What a template names must be there: what is not is a bug, and panics.
//
// text/template itself calls methods by their names, for which the linker keeps every method of every
// library (7 MB of the program), and it shows what it is given as it is. Here one function puts
// every value of a form of output in place, and so makes the foreign text in it safe: none is forgotten.
package template

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"text/template/parse"
)

// Funcs are functions that templates call, by name. Each has one result.
type Funcs = map[string]any

// Safe is text that is of the form of the output already.
type Safe string

// Raw is a function whose text is of the form of the output already.
func Raw(function any) any { return raw{function} }

type raw struct{ function any }

// A Set is templates of one form of output. Several goroutines may use it.
type Set struct {
	Trees map[string]*parse.Tree
	// Filled is for tests, and told of everything that is filled in.
	Filled func(name string, data any, more Funcs)
	funcs  Funcs
	put    func(out []byte, value any) []byte
}

// Parse reads all templates of files, which is where the markup comes from: only what the compiler embedded can be in
// an embed.FS. Each is known by the name that its file defines for it. Put adds a value to the output behind what is
// there: nil, a string, an int, or a value of another type as it is.
func Parse(files embed.FS, put func(out []byte, value any) []byte, funcs Funcs) *Set {
	s := &Set{Trees: map[string]*parse.Tree{}, funcs: maps.Clone(builtin), put: put}
	maps.Copy(s.funcs, funcs)
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err == nil {
			tree := parse.New(name)
			tree.Mode = parse.SkipFuncCheck
			_, err = tree.Parse(string(text), "", "", s.Trees)
		}
		return err
	})
	if err != nil {
		panic("template: " + err.Error())
	}
	return s
}

// builtin are functions of every template.
var builtin = Funcs{
	"not":  func(value any) bool { return !truth(reflect.ValueOf(value)) },
	"and":  func(a, b any) bool { return truth(reflect.ValueOf(a)) && truth(reflect.ValueOf(b)) },
	"or":   func(a, b any) bool { return truth(reflect.ValueOf(a)) || truth(reflect.ValueOf(b)) },
	"same": func(a, b string) bool { return a == b },
	// The number after another, and of a list its length, the first n, the last, and how many there are beyond n.
	"next":   func(n int) int { return n + 1 },
	"len":    Len,
	"first":  func(n int, list any) any { return reflect.ValueOf(list).Slice(0, min(n, Len(list))).Interface() },
	"last":   func(list any) any { return reflect.ValueOf(list).Index(Len(list) - 1).Interface() },
	"beyond": func(n int, list any) int { return max(0, Len(list)-n) },
}

// Len is how long a list is.
func Len(list any) int { return reflect.ValueOf(list).Len() }

// Has reports whether there is a template of that name.
func (s *Set) Has(name string) bool { return s.Trees[name] != nil }

// Fill adds a template to the output, filled in with data and with more functions than those of the set.
func (s *Set) Fill(out []byte, name string, data any, more Funcs) []byte {
	if s.Filled != nil {
		s.Filled(name, data, more)
	}
	f := filling{set: s, more: more, out: out}
	f.template(name, reflect.ValueOf(data))
	return f.out
}

// A filling is a template being filled in.
type filling struct {
	set  *Set
	more Funcs
	vars map[string]reflect.Value
	out  []byte
}

func (f *filling) template(name string, dot reflect.Value) {
	if !f.set.Has(name) {
		panic("template: there is none called " + name)
	}
	vars := f.vars
	f.vars = map[string]reflect.Value{"$": dot}
	f.walk(f.set.Trees[name].Root, dot)
	f.vars = vars
}

func (f *filling) walk(list *parse.ListNode, dot reflect.Value) {
	if list == nil { // there is no else
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			f.out = append(f.out, n.Text...)
		case *parse.ActionNode:
			f.out = f.set.put(f.out, plain(f.pipe(n.Pipe, dot)))
		case *parse.TemplateNode:
			f.template(n.Name, f.pipe(n.Pipe, dot))
		case *parse.IfNode:
			f.branch(n.BranchNode, truth(f.pipe(n.Pipe, dot)), dot, dot)
		case *parse.WithNode:
			value := f.pipe(n.Pipe, dot)
			f.branch(n.BranchNode, truth(value), value, dot)
		case *parse.RangeNode:
			f.each(n, f.pipe(n.Pipe, dot), dot)
		default:
			panic(fmt.Sprintf("template: a %T is not known", n))
		}
	}
}

func (f *filling) branch(n parse.BranchNode, is bool, dot, other reflect.Value) {
	if is {
		f.walk(n.List, dot)
	} else {
		f.walk(n.ElseList, other)
	}
}

// each fills in a part for each of a list. Its variables are the number of one from 0, and the one.
func (f *filling) each(n *parse.RangeNode, list, dot reflect.Value) {
	if list.Len() == 0 {
		f.walk(n.ElseList, dot)
	}
	for i := range list.Len() {
		values := []reflect.Value{reflect.ValueOf(i), list.Index(i)}
		for j, decl := range n.Pipe.Decl {
			f.vars[decl.Ident[0]] = values[len(values)-len(n.Pipe.Decl)+j]
		}
		f.walk(n.List, list.Index(i))
	}
}

// pipe is the value of the one command of a pipe: that of a function, or of what else it begins with.
func (f *filling) pipe(n *parse.PipeNode, dot reflect.Value) reflect.Value {
	if len(n.Cmds) != 1 {
		panic("template: more than one command in " + n.String())
	}
	args := n.Cmds[0].Args
	name, is := args[0].(*parse.IdentifierNode)
	if !is {
		return f.value(args[0], dot)
	}
	var values []reflect.Value
	for _, arg := range args[1:] {
		values = append(values, f.value(arg, dot))
	}
	return f.call(name.Ident, values)
}

// Function is the one of a name, and whether what it returns is of the form of the output already.
func (s *Set) Function(name string, more Funcs) (function reflect.Value, isRaw bool) {
	is, known := more[name]
	if !known {
		is = s.funcs[name]
	}
	of, isRaw := is.(raw)
	if isRaw {
		is = of.function
	}
	return reflect.ValueOf(is), isRaw
}

func (f *filling) call(name string, args []reflect.Value) reflect.Value {
	fn, isRaw := f.set.Function(name, f.more)
	if !fn.IsValid() {
		panic("template: there is no function " + name)
	}
	for i, arg := range args {
		as := fn.Type().In(min(i, fn.Type().NumIn()-1))
		if fn.Type().IsVariadic() && i >= fn.Type().NumIn()-1 {
			as = as.Elem()
		}
		if as.Kind() == reflect.Interface {
			arg = reflect.ValueOf(plain(arg))
			args[i] = arg
		}
		switch {
		case !arg.IsValid():
			args[i] = reflect.Zero(as)
		case !arg.Type().AssignableTo(as) && (arg.Kind() == as.Kind() || arg.CanInt() && as.Kind() == reflect.Int):
			args[i] = arg.Convert(as) // of a type of its own
		}
	}
	result := whole(fn.Call(args)[0])
	if isRaw {
		return result.Convert(reflect.TypeFor[Safe]())
	}
	return result
}

// value is that of one argument.
func (f *filling) value(node parse.Node, dot reflect.Value) reflect.Value {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.VariableNode:
		return fields(f.vars[n.Ident[0]], n.Ident[1:])
	case *parse.PipeNode:
		return f.pipe(n, dot)
	case *parse.IdentifierNode:
		return f.call(n.Ident, nil)
	case *parse.StringNode:
		return reflect.ValueOf(n.Text)
	case *parse.NumberNode:
		return reflect.ValueOf(int(n.Int64))
	}
	panic("template: no value is " + node.String())
}

// fields follows fields of structs by their names.
func fields(value reflect.Value, names []string) reflect.Value {
	value = whole(value)
	for _, name := range names {
		of := reflect.Indirect(value)
		if value = of.FieldByName(name); !value.IsValid() {
			panic(fmt.Sprintf("template: a %s has no field %s", of.Type(), name))
		}
		value = whole(value)
	}
	return value
}

// whole is a value itself, where it stands in an interface.
func whole(value reflect.Value) reflect.Value {
	if value.Kind() == reflect.Interface {
		return value.Elem()
	}
	return value
}

// plain is a value as it is put in place: nil, a string, an int, also of a pointer, or what it is.
func plain(value reflect.Value) any {
	if of := reflect.Indirect(value); of.CanInt() || of.Kind() == reflect.String {
		value = of
	}
	switch {
	case !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil():
		return nil
	case value.Kind() == reflect.String && value.Type() != reflect.TypeFor[Safe]():
		return value.String()
	case value.CanInt():
		return int(value.Int())
	}
	return value.Interface()
}

// truth reports whether a value is something: not empty, not nil, not zero, not false.
func truth(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice:
		return value.Len() > 0
	case reflect.Struct:
		return true
	}
	return !value.IsZero()
}
