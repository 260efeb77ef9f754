// C, because the Swift compiler needs half a minute for arrays of this size.
#include "embedded.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const char contract[] = {
#embed "../../openapi.yaml" suffix(, 0) if_empty(0)
};

static const EmbeddedFile console[] = {
    {"access-check.js", (const char[]){
#embed "../CoatyGateway/Console/access-check.js" suffix(, 0) if_empty(0)
    }},
    {"access-page.js", (const char[]){
#embed "../CoatyGateway/Console/access-page.js" suffix(, 0) if_empty(0)
    }},
    {"access.css", (const char[]){
#embed "../CoatyGateway/Console/access.css" suffix(, 0) if_empty(0)
    }},
    {"access.js", (const char[]){
#embed "../CoatyGateway/Console/access.js" suffix(, 0) if_empty(0)
    }},
    {"actor-explanation.js", (const char[]){
#embed "../CoatyGateway/Console/actor-explanation.js" suffix(, 0) if_empty(0)
    }},
    {"address.js", (const char[]){
#embed "../CoatyGateway/Console/address.js" suffix(, 0) if_empty(0)
    }},
    {"alive-objects.js", (const char[]){
#embed "../CoatyGateway/Console/alive-objects.js" suffix(, 0) if_empty(0)
    }},
    {"alive.css", (const char[]){
#embed "../CoatyGateway/Console/alive.css" suffix(, 0) if_empty(0)
    }},
    {"alive.js", (const char[]){
#embed "../CoatyGateway/Console/alive.js" suffix(, 0) if_empty(0)
    }},
    {"answer-history.js", (const char[]){
#embed "../CoatyGateway/Console/answer-history.js" suffix(, 0) if_empty(0)
    }},
    {"answers.js", (const char[]){
#embed "../CoatyGateway/Console/answers.js" suffix(, 0) if_empty(0)
    }},
    {"app.js", (const char[]){
#embed "../CoatyGateway/Console/app.js" suffix(, 0) if_empty(0)
    }},
    {"away.js", (const char[]){
#embed "../CoatyGateway/Console/away.js" suffix(, 0) if_empty(0)
    }},
    {"client-code.js", (const char[]){
#embed "../CoatyGateway/Console/client-code.js" suffix(, 0) if_empty(0)
    }},
    {"client.d.ts", (const char[]){
#embed "../CoatyGateway/Console/client.d.ts" suffix(, 0) if_empty(0)
    }},
    {"client.js", (const char[]){
#embed "../CoatyGateway/Console/client.js" suffix(, 0) if_empty(0)
    }},
    {"coalesced.js", (const char[]){
#embed "../CoatyGateway/Console/coalesced.js" suffix(, 0) if_empty(0)
    }},
    {"code-of.js", (const char[]){
#embed "../CoatyGateway/Console/code-of.js" suffix(, 0) if_empty(0)
    }},
    {"condition.js", (const char[]){
#embed "../CoatyGateway/Console/condition.js" suffix(, 0) if_empty(0)
    }},
    {"connection-rows.js", (const char[]){
#embed "../CoatyGateway/Console/connection-rows.js" suffix(, 0) if_empty(0)
    }},
    {"connections.js", (const char[]){
#embed "../CoatyGateway/Console/connections.js" suffix(, 0) if_empty(0)
    }},
    {"console.css", (const char[]){
#embed "../CoatyGateway/Console/console.css" suffix(, 0) if_empty(0)
    }},
    {"copy-code.js", (const char[]){
#embed "../CoatyGateway/Console/copy-code.js" suffix(, 0) if_empty(0)
    }},
    {"curl.js", (const char[]){
#embed "../CoatyGateway/Console/curl.js" suffix(, 0) if_empty(0)
    }},
    {"denial.js", (const char[]){
#embed "../CoatyGateway/Console/denial.js" suffix(, 0) if_empty(0)
    }},
    {"dom.js", (const char[]){
#embed "../CoatyGateway/Console/dom.js" suffix(, 0) if_empty(0)
    }},
    {"event-detail.js", (const char[]){
#embed "../CoatyGateway/Console/event-detail.js" suffix(, 0) if_empty(0)
    }},
    {"event-key.js", (const char[]){
#embed "../CoatyGateway/Console/event-key.js" suffix(, 0) if_empty(0)
    }},
    {"explanation.js", (const char[]){
#embed "../CoatyGateway/Console/explanation.js" suffix(, 0) if_empty(0)
    }},
    {"fault.js", (const char[]){
#embed "../CoatyGateway/Console/fault.js" suffix(, 0) if_empty(0)
    }},
    {"feed-export.js", (const char[]){
#embed "../CoatyGateway/Console/feed-export.js" suffix(, 0) if_empty(0)
    }},
    {"feed-filter.js", (const char[]){
#embed "../CoatyGateway/Console/feed-filter.js" suffix(, 0) if_empty(0)
    }},
    {"feed-page.js", (const char[]){
#embed "../CoatyGateway/Console/feed-page.js" suffix(, 0) if_empty(0)
    }},
    {"feed-rows.js", (const char[]){
#embed "../CoatyGateway/Console/feed-rows.js" suffix(, 0) if_empty(0)
    }},
    {"feed-subscriptions.js", (const char[]){
#embed "../CoatyGateway/Console/feed-subscriptions.js" suffix(, 0) if_empty(0)
    }},
    {"feed.css", (const char[]){
#embed "../CoatyGateway/Console/feed.css" suffix(, 0) if_empty(0)
    }},
    {"feed.js", (const char[]){
#embed "../CoatyGateway/Console/feed.js" suffix(, 0) if_empty(0)
    }},
    {"filter-builder.js", (const char[]){
#embed "../CoatyGateway/Console/filter-builder.js" suffix(, 0) if_empty(0)
    }},
    {"find-value.js", (const char[]){
#embed "../CoatyGateway/Console/find-value.js" suffix(, 0) if_empty(0)
    }},
    {"full-texts.js", (const char[]){
#embed "../CoatyGateway/Console/full-texts.js" suffix(, 0) if_empty(0)
    }},
    {"gateway-clients.js", (const char[]){
#embed "../CoatyGateway/Console/gateway-clients.js" suffix(, 0) if_empty(0)
    }},
    {"gateway-parts.js", (const char[]){
#embed "../CoatyGateway/Console/gateway-parts.js" suffix(, 0) if_empty(0)
    }},
    {"gateway.css", (const char[]){
#embed "../CoatyGateway/Console/gateway.css" suffix(, 0) if_empty(0)
    }},
    {"gateway.js", (const char[]){
#embed "../CoatyGateway/Console/gateway.js" suffix(, 0) if_empty(0)
    }},
    {"graph.js", (const char[]){
#embed "../CoatyGateway/Console/graph.js" suffix(, 0) if_empty(0)
    }},
    {"help.js", (const char[]){
#embed "../CoatyGateway/Console/help.js" suffix(, 0) if_empty(0)
    }},
    {"icon.svg", (const char[]){
#embed "../CoatyGateway/Console/icon.svg" suffix(, 0) if_empty(0)
    }},
    {"ids.js", (const char[]){
#embed "../CoatyGateway/Console/ids.js" suffix(, 0) if_empty(0)
    }},
    {"index.html", (const char[]){
#embed "../CoatyGateway/Console/index.html" suffix(, 0) if_empty(0)
    }},
    {"json-print.js", (const char[]){
#embed "../CoatyGateway/Console/json-print.js" suffix(, 0) if_empty(0)
    }},
    {"json-text.js", (const char[]){
#embed "../CoatyGateway/Console/json-text.js" suffix(, 0) if_empty(0)
    }},
    {"known-operations.js", (const char[]){
#embed "../CoatyGateway/Console/known-operations.js" suffix(, 0) if_empty(0)
    }},
    {"layout.js", (const char[]){
#embed "../CoatyGateway/Console/layout.js" suffix(, 0) if_empty(0)
    }},
    {"list-pane.js", (const char[]){
#embed "../CoatyGateway/Console/list-pane.js" suffix(, 0) if_empty(0)
    }},
    {"merge-patch.js", (const char[]){
#embed "../CoatyGateway/Console/merge-patch.js" suffix(, 0) if_empty(0)
    }},
    {"names.js", (const char[]){
#embed "../CoatyGateway/Console/names.js" suffix(, 0) if_empty(0)
    }},
    {"namespaces.js", (const char[]){
#embed "../CoatyGateway/Console/namespaces.js" suffix(, 0) if_empty(0)
    }},
    {"object-changes.js", (const char[]){
#embed "../CoatyGateway/Console/object-changes.js" suffix(, 0) if_empty(0)
    }},
    {"object-detail.js", (const char[]){
#embed "../CoatyGateway/Console/object-detail.js" suffix(, 0) if_empty(0)
    }},
    {"observe.js", (const char[]){
#embed "../CoatyGateway/Console/observe.js" suffix(, 0) if_empty(0)
    }},
    {"operation-offers.js", (const char[]){
#embed "../CoatyGateway/Console/operation-offers.js" suffix(, 0) if_empty(0)
    }},
    {"patterns.js", (const char[]){
#embed "../CoatyGateway/Console/patterns.js" suffix(, 0) if_empty(0)
    }},
    {"plot.css", (const char[]){
#embed "../CoatyGateway/Console/plot.css" suffix(, 0) if_empty(0)
    }},
    {"plot.js", (const char[]){
#embed "../CoatyGateway/Console/plot.js" suffix(, 0) if_empty(0)
    }},
    {"rates.js", (const char[]){
#embed "../CoatyGateway/Console/rates.js" suffix(, 0) if_empty(0)
    }},
    {"responder.js", (const char[]){
#embed "../CoatyGateway/Console/responder.js" suffix(, 0) if_empty(0)
    }},
    {"rest.js", (const char[]){
#embed "../CoatyGateway/Console/rest.js" suffix(, 0) if_empty(0)
    }},
    {"ring.js", (const char[]){
#embed "../CoatyGateway/Console/ring.js" suffix(, 0) if_empty(0)
    }},
    {"routing-draft.js", (const char[]){
#embed "../CoatyGateway/Console/routing-draft.js" suffix(, 0) if_empty(0)
    }},
    {"routing-edit.js", (const char[]){
#embed "../CoatyGateway/Console/routing-edit.js" suffix(, 0) if_empty(0)
    }},
    {"routing-form.js", (const char[]){
#embed "../CoatyGateway/Console/routing-form.js" suffix(, 0) if_empty(0)
    }},
    {"routing-live.js", (const char[]){
#embed "../CoatyGateway/Console/routing-live.js" suffix(, 0) if_empty(0)
    }},
    {"routing-model.js", (const char[]){
#embed "../CoatyGateway/Console/routing-model.js" suffix(, 0) if_empty(0)
    }},
    {"routing-page.js", (const char[]){
#embed "../CoatyGateway/Console/routing-page.js" suffix(, 0) if_empty(0)
    }},
    {"routing-source.js", (const char[]){
#embed "../CoatyGateway/Console/routing-source.js" suffix(, 0) if_empty(0)
    }},
    {"routing-table.js", (const char[]){
#embed "../CoatyGateway/Console/routing-table.js" suffix(, 0) if_empty(0)
    }},
    {"routing-why.js", (const char[]){
#embed "../CoatyGateway/Console/routing-why.js" suffix(, 0) if_empty(0)
    }},
    {"routing.css", (const char[]){
#embed "../CoatyGateway/Console/routing.css" suffix(, 0) if_empty(0)
    }},
    {"routing.js", (const char[]){
#embed "../CoatyGateway/Console/routing.js" suffix(, 0) if_empty(0)
    }},
    {"row-list.js", (const char[]){
#embed "../CoatyGateway/Console/row-list.js" suffix(, 0) if_empty(0)
    }},
    {"scheme.js", (const char[]){
#embed "../CoatyGateway/Console/scheme.js" suffix(, 0) if_empty(0)
    }},
    {"send.css", (const char[]){
#embed "../CoatyGateway/Console/send.css" suffix(, 0) if_empty(0)
    }},
    {"send.js", (const char[]){
#embed "../CoatyGateway/Console/send.js" suffix(, 0) if_empty(0)
    }},
    {"shortcuts.js", (const char[]){
#embed "../CoatyGateway/Console/shortcuts.js" suffix(, 0) if_empty(0)
    }},
    {"sign-in.js", (const char[]){
#embed "../CoatyGateway/Console/sign-in.js" suffix(, 0) if_empty(0)
    }},
    {"source-rates.js", (const char[]){
#embed "../CoatyGateway/Console/source-rates.js" suffix(, 0) if_empty(0)
    }},
    {"sparkline.js", (const char[]){
#embed "../CoatyGateway/Console/sparkline.js" suffix(, 0) if_empty(0)
    }},
    {"status.js", (const char[]){
#embed "../CoatyGateway/Console/status.js" suffix(, 0) if_empty(0)
    }},
    {"summary.js", (const char[]){
#embed "../CoatyGateway/Console/summary.js" suffix(, 0) if_empty(0)
    }},
    {"text-widths.js", (const char[]){
#embed "../CoatyGateway/Console/text-widths.js" suffix(, 0) if_empty(0)
    }},
    {"timeline.js", (const char[]){
#embed "../CoatyGateway/Console/timeline.js" suffix(, 0) if_empty(0)
    }},
    {"token.js", (const char[]){
#embed "../CoatyGateway/Console/token.js" suffix(, 0) if_empty(0)
    }},
    {"value-history.js", (const char[]){
#embed "../CoatyGateway/Console/value-history.js" suffix(, 0) if_empty(0)
    }},
};

const char *embedded_contract(void) { return contract; }

const EmbeddedFile *embedded_console_file(int index) {
    return index >= 0 && index < (int)(sizeof console / sizeof *console) ? &console[index] : 0;
}

const char *embedded_commit(void) { return COATY_COMMIT; }
