package httpapi

import (
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"
)

type object = map[string]any

// openAPI describes the routes: version 3.1 of the OpenAPI specification. The schemas are those of the
// Go types that are encoded.
func openAPI(routes []route, prefix string) ([]byte, error) {
	s := schemas{}
	failed := object{"description": "The request failed.", "content": object{"application/json": object{"schema": s.of(reflect.TypeFor[failure]())}}}
	paths := object{}
	for _, rt := range routes {
		op := object{"summary": rt.summary, "operationId": operationID(rt), "responses": object{
			"200":     object{"description": "Done.", "content": object{"application/json": object{"schema": s.of(reflect.TypeOf(rt.result))}}},
			"default": failed,
		}}
		var params []object
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(rt.path, -1) {
			params = append(params, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		properties := object{}
		for _, p := range rt.params {
			if rt.method == http.MethodGet {
				params = append(params, object{"name": p.name, "in": "query", "description": p.description, "schema": object{"type": "string"}})
			} else {
				properties[p.name] = object{"type": "string", "description": p.description}
			}
		}
		if len(params) > 0 {
			op["parameters"] = params
		}
		if rt.method == http.MethodPost {
			schema := object{"type": "object", "properties": properties}
			op["requestBody"] = object{"content": object{
				"application/x-www-form-urlencoded": object{"schema": schema}, "application/json": object{"schema": object{"type": "object"}}}}
		}
		path := strings.TrimSuffix(rt.path, "{$}")
		if path == "/" {
			path = "/index"
		}
		path += ".json"
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(rt.method)] = op
	}
	server := prefix
	if server == "" {
		server = "/"
	}
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{"title": "recrawl", "version": "1", "description": "A crawl. Each path is a page, too, without .json. " +
			"Times are RFC 3339, durations are in seconds. Lists come in parts: next is the query of the next one."},
		"servers":    []object{{"url": server}},
		"paths":      paths,
		"components": object{"schemas": s},
	}, "", " ")
}

func operationID(rt route) string {
	id := strings.ToLower(rt.method)
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(rt.path, -1) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

// schemas are those of named types.
type schemas map[string]any

func (s schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if s[name] == nil {
			s[name] = object{} // for a type that contains itself
			properties, required := object{}, []string{}
			s.fields(t, properties, &required)
			schema := object{"type": "object", "properties": properties, "additionalProperties": false}
			if len(required) > 0 {
				schema["required"] = required
			}
			s[name] = schema
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	return object{"type": "integer"}
}

func (s schemas) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && tag == "" {
			s.fields(f.Type, properties, required)
			continue
		}
		if name == "-" || name == "" {
			continue
		}
		properties[name] = s.of(f.Type)
		if options == "" {
			*required = append(*required, name)
		}
	}
}
