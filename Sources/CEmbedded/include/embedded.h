#pragma once

/// A file of the repository that the gateway serves unchanged. The text contains no null character except the final
/// one.
typedef struct {
    const char *name;
    const char *text;
} EmbeddedFile;

/// The OpenAPI contract.
const char *embedded_contract(void);

/// Returns the console file at an index; a null pointer after the last one.
const EmbeddedFile *embedded_console_file(int index);

/// Returns the commit that the binary was built from, or `unknown`.
const char *embedded_commit(void);
