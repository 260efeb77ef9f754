# Types each argument, such as "coaty-gateway disc", and the tab key in an interactive shell, and prints the line that results.
zmodload zsh/zpty
for line in "$@"; do
    zpty shell zsh -f -i
    zpty -w shell 'autoload -Uz compinit; compinit -D -u; show() { print -r "<$BUFFER>"; exit }; zle -N show; bindkey "^X" show; PROMPT="ready> "'
    zpty -r -m shell output $'*\rready> *'
    zpty -w -n shell "$line"$'\t\C-x'
    zpty -r -m shell output '*<*>*'
    output=${output##*<}
    print -r "$line: ${output%%>*}"
    zpty -d shell
done
