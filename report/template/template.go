// Package template fills in templates that stand in files of this program. They are written as those of
// text/template are, and parsed by its parser, and have of it: fields, variables, functions, if, with, range,
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
	"strings"
	"text/template/parse"
)

// Funcs are functions that templates call, by name. Each has one result.
type Funcs = map[string]any

// A Set is templates of one form of output. Several goroutines may use it.
type Set struct {
	trees map[string]*parse.Tree
	funcs Funcs
	put   func(out []byte, value any) []byte
}

// Parse reads all templates of files, which is where the markup comes from: only what the compiler embedded can be in
// an embed.FS. Each is known by the name that its file defines for it. Put adds a value to the output behind what is
// there; of a type that is a string it gets a string, of one that is a number an int.
func Parse(files embed.FS, put func(out []byte, value any) []byte, funcs Funcs) *Set {
	s := &Set{map[string]*parse.Tree{}, maps.Clone(builtin), put}
	maps.Copy(s.funcs, funcs)
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		tree := parse.New(name)
		tree.Mode = parse.SkipFuncCheck
		_, err = tree.Parse(string(text), "", "", s.trees)
		return err
	})
	if err != nil {
		panic("template: " + err.Error())
	}
	return s
}

// builtin are functions of every template.
var builtin = Funcs{
	"not": func(value any) bool { return !truth(reflect.ValueOf(value)) },
	"and": func(a, b any) bool { return truth(reflect.ValueOf(a)) && truth(reflect.ValueOf(b)) },
	"or":  func(a, b any) bool { return truth(reflect.ValueOf(a)) || truth(reflect.ValueOf(b)) },
	// The number after another, and of a list its length, the first n, the last, and how many there are beyond n.
	"next": func(n int) int { return n + 1 },
	"len":  func(list any) int { return reflect.ValueOf(list).Len() },
	"first": func(n int, list any) any {
		return reflect.ValueOf(list).Slice(0, min(n, reflect.ValueOf(list).Len())).Interface()
	},
	"last":   func(list any) any { return reflect.ValueOf(list).Index(reflect.ValueOf(list).Len() - 1).Interface() },
	"beyond": func(n int, list any) int { return max(0, reflect.ValueOf(list).Len()-n) },
}

// Len is how long a list is.
func Len(list any) int { return reflect.ValueOf(list).Len() }

// Safe is text that is of the form of the output already.
type Safe string

// Has reports whether there is a template of that name.
func (s *Set) Has(name string) bool { return s.trees[name] != nil }

// Fill adds a template to the output, filled in with data and with more functions than those of the set.
func (s *Set) Fill(out []byte, name string, data any, more Funcs) []byte {
	f := filling{set: s, more: more, out: out}
	f.template(name, reflect.ValueOf(data))
	return f.out
}

// A filling is a template being filled in.
type filling struct {
	set  *Set
	more Funcs
	vars []variable
	out  []byte
}

type variable struct {
	name  string
	value reflect.Value
}

func (f *filling) template(name string, dot reflect.Value) {
	tree := f.set.trees[name]
	if tree == nil {
		panic("template: there is none called " + name)
	}
	vars := f.vars
	f.vars = []variable{{"$", dot}}
	f.walk(tree.Root, dot)
	f.vars = vars
}

func (f *filling) walk(node parse.Node, dot reflect.Value) {
	known := len(f.vars)
	switch n := node.(type) {
	case *parse.ListNode:
		for _, one := range n.Nodes {
			f.walk(one, dot)
		}
		return
	case *parse.TextNode:
		f.out = append(f.out, n.Text...)
	case *parse.ActionNode:
		if value := f.pipe(n.Pipe, dot); len(n.Pipe.Decl) == 0 {
			f.out = f.set.put(f.out, plain(value))
		} else {
			return // the variable is of the list
		}
	case *parse.IfNode:
		f.either(truth(f.pipe(n.Pipe, dot)), &n.BranchNode, dot, dot)
	case *parse.WithNode:
		value := f.pipe(n.Pipe, dot)
		f.either(truth(value), &n.BranchNode, value, dot)
	case *parse.RangeNode:
		list := f.pipe(n.Pipe, dot)
		f.vars = f.vars[:known]
		for i, one := range list.Seq2() {
			for j, decl := range n.Pipe.Decl {
				value := one
				if j < len(n.Pipe.Decl)-1 {
					value = i
				}
				f.vars = append(f.vars, variable{decl.Ident[0], value})
			}
			f.walk(n.List, one)
			f.vars = f.vars[:known]
		}
		if list.Len() == 0 && n.ElseList != nil {
			f.walk(n.ElseList, dot)
		}
	case *parse.TemplateNode:
		f.template(n.Name, f.pipe(n.Pipe, dot))
	default:
		panic(fmt.Sprintf("template: a %T is not known", n))
	}
	f.vars = f.vars[:known]
}

// either fills in one branch of two.
func (f *filling) either(is bool, n *parse.BranchNode, dot, other reflect.Value) {
	if is {
		f.walk(n.List, dot)
	} else if !is && n.ElseList != nil {
		f.walk(n.ElseList, other)
	}
}

// pipe is the value of a pipe, which is handed on from command to command.
func (f *filling) pipe(n *parse.PipeNode, dot reflect.Value) (value reflect.Value) {
	if n == nil {
		return value
	}
	for i, c := range n.Cmds {
		name, is := c.Args[0].(*parse.IdentifierNode)
		if !is {
			value = f.value(c.Args[0], dot)
			continue
		}
		var args []reflect.Value
		for _, arg := range c.Args[1:] {
			args = append(args, f.value(arg, dot))
		}
		if i > 0 {
			args = append(args, value)
		}
		value = f.call(name.Ident, args)
	}
	for _, decl := range n.Decl {
		f.vars = append(f.vars, variable{decl.Ident[0], value})
	}
	return value
}

func (f *filling) call(name string, args []reflect.Value) reflect.Value {
	fn := reflect.ValueOf(f.more[name])
	if !fn.IsValid() {
		fn = reflect.ValueOf(f.set.funcs[name])
	}
	if !fn.IsValid() {
		panic("template: there is no function " + name)
	}
	for i, arg := range args {
		as := fn.Type().In(min(i, fn.Type().NumIn()-1))
		if fn.Type().IsVariadic() && i >= fn.Type().NumIn()-1 {
			as = as.Elem()
		}
		switch {
		case !arg.IsValid():
			args[i] = reflect.Zero(as)
		case !arg.Type().AssignableTo(as) && (arg.Kind() == as.Kind() || arg.CanInt() && as.Kind() == reflect.Int):
			args[i] = arg.Convert(as) // of a type of its own
		}
	}
	return whole(fn.Call(args)[0])
}

// value is that of one argument.
func (f *filling) value(node parse.Node, dot reflect.Value) reflect.Value {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.VariableNode:
		for i := len(f.vars) - 1; i >= 0; i-- {
			if f.vars[i].name == n.Ident[0] {
				return fields(f.vars[i].value, n.Ident[1:])
			}
		}
	case *parse.ChainNode:
		return fields(f.value(n.Node, dot), n.Field)
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

// fields follows fields of structs, and keys of maps, by their names.
func fields(value reflect.Value, names []string) reflect.Value {
	value = whole(value)
	for _, name := range names {
		of := reflect.Indirect(value)
		if of.Kind() == reflect.Map {
			value = of.MapIndex(reflect.ValueOf(name))
		} else {
			value = of.FieldByName(name)
		}
		if !value.IsValid() {
			panic(fmt.Sprintf("template: no field %s in %s", strings.Join(names, "."), of.Kind()))
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

// plain is a value as it is put in place: nil, a string, an int, or what it is.
func plain(value reflect.Value) any {
	if of := reflect.Indirect(value); of.IsValid() && (of.Kind() == reflect.String || of.CanInt()) {
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
	case reflect.Slice, reflect.Map:
		return value.Len() > 0
	case reflect.Struct:
		return true
	}
	return !value.IsZero()
}
