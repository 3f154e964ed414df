/* A YAML text walked for line numbers: libcyaml keeps none for the values that it hands out. */
#include "kernels/place.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* Parses the first document; false if there is none or it is no YAML. */
static bool load(yaml_parser_t *parser, yaml_document_t *doc, const char *text, size_t size) {
    if (!yaml_parser_initialize(parser))
        return false;
    yaml_parser_set_input_string(parser, (const unsigned char *)text, size);
    if (yaml_parser_load(parser, doc)) {
        if (yaml_document_get_root_node(doc))
            return true;
        yaml_document_delete(doc);
    }
    yaml_parser_delete(parser);
    return false;
}

status_t place_check_yaml(const char *path, const char *text, size_t size) {
    yaml_parser_t parser;
    yaml_document_t doc;
    status_t st = OK;
    bool has_root = true;

    if (!yaml_parser_initialize(&parser))
        return FAIL(ERR_NOMEM, "%s: no memory for a YAML parser", path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    for (unsigned count = 0; st == OK && has_root; count++) {
        if (!yaml_parser_load(&parser, &doc)) {
            st = parser.error == YAML_MEMORY_ERROR
                     ? FAIL(ERR_NOMEM, "%s: no memory for its YAML", path)
                     : FAIL(ERR_SYNTAX, "%s:%zu:%zu: not YAML: %s", path,
                            parser.problem_mark.line + 1, parser.problem_mark.column + 1,
                            parser.problem ? parser.problem : "unreadable");
            break;
        }
        const yaml_node_t *root = yaml_document_get_root_node(&doc);
        has_root = root != NULL;
        if (count == 0 && !root)
            st = FAIL(ERR_SYNTAX, "%s:1: empty: expected `kernels:`", path);
        if (count == 1 && root)
            st = FAIL(ERR_SYNTAX, "%s:%zu: a second document: expected one", path,
                      root->start_mark.line + 1);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return st;
}

static bool is_scalar(const yaml_node_t *node, const char *text, size_t length) {
    return node && node->type == YAML_SCALAR_NODE && node->data.scalar.length == length &&
           memcmp(node->data.scalar.value, text, length) == 0;
}

/* One step of a route, at *p, which moves behind it; NULL if the text does not go there. */
static const yaml_node_t *step(yaml_document_t *doc, const yaml_node_t *node, const char **p) {
    if (**p == '[') {
        char *end;
        size_t i = strtoul(*p + 1, &end, 10);
        *p = *end == ']' ? end + 1 : end;
        if (node->type != YAML_SEQUENCE_NODE)
            return NULL;
        yaml_node_item_t *items = node->data.sequence.items.start;
        size_t count = (size_t)(node->data.sequence.items.top - items);
        return i < count ? yaml_document_get_node(doc, items[i]) : NULL;
    }
    *p += **p == '.';
    size_t length = strcspn(*p, ".[");
    const char *name = *p;
    *p += length;
    if (node->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++)
        if (is_scalar(yaml_document_get_node(doc, pair->key), name, length))
            return yaml_document_get_node(doc, pair->value);
    return NULL;
}

static struct place place_of_node(const yaml_node_t *node) {
    return (struct place){node->start_mark.line + 1, node->start_mark.column + 1};
}

struct place place_of_value(const char *text, size_t size, const char *route) {
    yaml_parser_t parser;
    yaml_document_t doc;
    if (!load(&parser, &doc, text, size))
        return (struct place){0, 0};
    const yaml_node_t *node = yaml_document_get_root_node(&doc);
    for (const yaml_node_t *next = node; next && *route;) {
        node = next;
        next = step(&doc, node, &route);
        if (next)
            node = next;
    }
    struct place place = place_of_node(node);
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    return place;
}

static bool before(struct place a, struct place b) {
    return a.line < b.line || (a.line == b.line && a.column < b.column);
}

struct place place_of_key(const char *text, size_t size, const char *key, struct place from) {
    yaml_parser_t parser;
    yaml_document_t doc;
    struct place best = {0, 0};
    if (!load(&parser, &doc, text, size))
        return best;
    for (yaml_node_t *node = doc.nodes.start; node < doc.nodes.top; node++) {
        if (node->type != YAML_MAPPING_NODE)
            continue;
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++) {
            const yaml_node_t *at = yaml_document_get_node(&doc, pair->key);
            if (!is_scalar(at, key, strlen(key)) || before(place_of_node(at), from))
                continue;
            if (best.line == 0 || before(place_of_node(at), best))
                best = place_of_node(at);
        }
    }
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    return best;
}
