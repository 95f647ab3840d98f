package pagetest

import (
	"fmt"
	"reflect"
	"sync"
	"text/template/parse"

	"github.com/countersign-dev/countersign/report/template"
)

// CheckTemplates makes each filling of a set panic whose template names a field or a function that is not there, or calls a
// function with what it does not take.
func CheckTemplates(set *template.Set) *template.Set {
	var known sync.Map
	set.Filled = func(name string, data any, more template.Funcs) {
		if _, done := known.LoadOrStore(fmt.Sprintf("%s %T", name, data), true); !done {
			c := checker{set: set, more: more, seen: map[string]bool{}}
			c.template(name, reflect.TypeOf(data))
		}
	}
	return set
}

type checker struct {
	set  *template.Set
	more template.Funcs
	seen map[string]bool
	name string
	vars map[string]reflect.Type
}

func (c *checker) template(name string, dot reflect.Type) {
	key := fmt.Sprint(name, " ", dot)
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	if !c.set.Has(name) {
		c.fail("there is no template " + name)
	}
	was, vars := c.name, c.vars
	c.name, c.vars = name, map[string]reflect.Type{"$": dot}
	c.walk(c.set.Trees[name].Root, dot)
	c.name, c.vars = was, vars
}

func (c *checker) fail(why string) { panic("pagetest: " + c.name + ": " + why) }

func (c *checker) walk(list *parse.ListNode, dot reflect.Type) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			c.pipe(n.Pipe, dot)
		case *parse.TemplateNode:
			c.template(n.Name, c.pipe(n.Pipe, dot))
		case *parse.IfNode:
			c.pipe(n.Pipe, dot)
			c.walk(n.List, dot)
			c.walk(n.ElseList, dot)
		case *parse.WithNode:
			c.walk(n.List, c.pipe(n.Pipe, dot))
			c.walk(n.ElseList, dot)
		case *parse.RangeNode:
			one := c.pipe(n.Pipe, dot)
			if one != nil {
				one = one.Elem()
			}
			for i, decl := range n.Pipe.Decl {
				c.vars[decl.Ident[0]] = one
				if i < len(n.Pipe.Decl)-1 {
					c.vars[decl.Ident[0]] = reflect.TypeFor[int]()
				}
			}
			c.walk(n.List, one)
			c.walk(n.ElseList, dot)
		}
	}
}

// pipe is the type of a value, nil where only the value tells it.
func (c *checker) pipe(n *parse.PipeNode, dot reflect.Type) reflect.Type {
	args := n.Cmds[0].Args
	name, is := args[0].(*parse.IdentifierNode)
	if !is {
		return c.value(args[0], dot)
	}
	var types []reflect.Type
	for _, arg := range args[1:] {
		types = append(types, c.value(arg, dot))
	}
	return c.call(name.Ident, types, n.String())
}

func (c *checker) call(name string, args []reflect.Type, in string) reflect.Type {
	fn, isRaw := c.set.Function(name, c.more)
	if !fn.IsValid() {
		c.fail("there is no function " + name)
	}
	takes := fn.Type().NumIn()
	if variadic := fn.Type().IsVariadic(); len(args) != takes && !variadic || variadic && len(args) < takes-1 {
		c.fail(fmt.Sprintf("%s: %d arguments, want %d", in, len(args), takes))
	}
	for i, arg := range args {
		as := fn.Type().In(min(i, takes-1))
		if fn.Type().IsVariadic() && i >= takes-1 {
			as = as.Elem()
		}
		isInt := as.Kind() == reflect.Int && arg != nil && arg.Kind() >= reflect.Int && arg.Kind() <= reflect.Int64
		if arg != nil && !arg.AssignableTo(as) && (arg.Kind() != as.Kind() || !arg.ConvertibleTo(as)) && !isInt {
			c.fail(fmt.Sprintf("%s: a %s is no %s", in, arg, as))
		}
	}
	if out := fn.Type().Out(0); !isRaw && out.Kind() != reflect.Interface {
		return out
	} else if isRaw && out.Kind() != reflect.String {
		c.fail(name + " returns no text")
	}
	return nil
}

func (c *checker) value(node parse.Node, dot reflect.Type) reflect.Type {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return c.fields(dot, n.Ident)
	case *parse.VariableNode:
		return c.fields(c.vars[n.Ident[0]], n.Ident[1:])
	case *parse.PipeNode:
		return c.pipe(n, dot)
	case *parse.IdentifierNode:
		return c.call(n.Ident, nil, n.Ident)
	case *parse.StringNode:
		return reflect.TypeFor[string]()
	case *parse.NumberNode:
		return reflect.TypeFor[int]()
	}
	c.fail("no value is " + node.String())
	return nil
}

func (c *checker) fields(of reflect.Type, names []string) reflect.Type {
	for _, name := range names {
		if of == nil || of.Kind() == reflect.Interface {
			return nil
		}
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		field, known := reflect.StructField{}, false
		if of.Kind() == reflect.Struct {
			field, known = of.FieldByName(name)
		}
		if !known || !field.IsExported() {
			c.fail(fmt.Sprintf("a %s has no field %s", of, name))
		}
		of = field.Type
	}
	return of
}
