// The Go types of the objects that the extender reads: each field's JSON name, and which of them Go writes as null.
//
// `python -m tests.parity.record_fields` records it. A field is null in JSON where its zero value has no `omitempty`
// that leaves it out: slices, maps, pointers and times. The zero value of each type is encoded here to see which.
// Which types: roots.go, with tests/e2e/go.mod; roots_1_37.go, with go-1.37.mod and the build tag kubernetes_1_37.
package main

import (
	"encoding/json"
	"log"
	"os"
	"reflect"
	"strings"
)

// Of: the type of the field, or of its elements, where that is in the table. Null: whether Go may write null.
type field struct {
	Of   string `json:"of,omitempty"`
	Null bool   `json:"null,omitempty"`
}

type table map[string]map[string]field

func main() {
	types := table{}
	kinds, templates := types.addAll(roots), types.addAll(workloads)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(map[string]any{"kinds": kinds, "workloads": templates, "types": types}); err != nil {
		log.Fatal(err)
	}
}

// Kind to the name of its type in the table.
func (t table) addAll(values map[string]any) map[string]string {
	names := map[string]string{}
	for kind, value := range values {
		names[kind] = t.add(reflect.TypeOf(value))
	}
	return names
}

// The name of the type in the table; empty for what is no struct, or one with a JSON form of its own.
func (t table) add(of reflect.Type) string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	if of.Kind() != reflect.Struct || of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler) {
		return ""
	}
	name := strings.TrimPrefix(of.PkgPath(), "k8s.io/") + "." + of.Name()
	if _, known := t[name]; known {
		return name
	}
	fields := map[string]field{}
	t[name] = fields
	t.fill(fields, of)
	for key, value := range encoded(of) {
		entry := fields[key]
		entry.Null = value == nil
		fields[key] = entry
	}
	return name
}

func (t table) fill(fields map[string]field, of reflect.Type) {
	for index := range of.NumField() {
		one := of.Field(index)
		name, _, _ := strings.Cut(one.Tag.Get("json"), ",")
		switch {
		case name == "-" || !one.IsExported():
		case name == "" && one.Anonymous:
			t.fill(fields, one.Type)
		default:
			if name == "" {
				name = one.Name
			}
			fields[name] = field{Of: t.add(one.Type)}
		}
	}
}

// The zero value of a struct type, as its JSON has it.
func encoded(of reflect.Type) map[string]any {
	data, err := json.Marshal(reflect.New(of).Interface())
	if err != nil {
		log.Fatal(of, err)
	}
	result := map[string]any{}
	if err := json.Unmarshal(data, &result); err != nil {
		log.Fatal(of, err)
	}
	return result
}
