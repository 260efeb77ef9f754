#pragma once

/// A file of the repository that the gateway serves as it stands: text without a null character, which ends it.
typedef struct {
    const char *name;
    const char *text;
} EmbeddedFile;

/// The contract.
const char *embedded_contract(void);

/// The file of the console at an index; a null pointer behind the last.
const EmbeddedFile *embedded_console_file(int index);
