# Prints the completions of each argument, such as "coaty-gateway disc", as the tab key finds them in an interactive shell.
source /usr/share/bash-completion/bash_completion
for line in "$@"; do
    read -ra COMP_WORDS <<<"$line"
    COMP_LINE=$line COMP_POINT=${#line} COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    # Loads the file of the command, and names its function.
    _completion_loader "${COMP_WORDS[0]}" || true
    function=$(complete -p "${COMP_WORDS[0]}" | sed -n 's/.* -F \(\S*\).*/\1/p')
    "$function" "${COMP_WORDS[0]}" "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}" || true
    echo "$line: ${COMPREPLY[*]}"
done
