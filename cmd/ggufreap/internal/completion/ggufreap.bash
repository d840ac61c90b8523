# Completion of ggufreap in bash. To load it now:  source <(ggufreap completion bash)
# For all shells of a user:  ggufreap completion bash > ~/.local/share/bash-completion/completions/ggufreap

_ggufreap() {
    local line words=()
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :none) compopt +o bashdefault +o default ;;
        :folders) compopt +o bashdefault +o default -o dirnames ;;
        :files) ;;
        *) words+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=("${words[@]}")
    if [[ ${#words[@]} -eq 1 && ${words[0]} == *= ]]; then
        compopt -o nospace
    fi
}

complete -o bashdefault -o default -F _ggufreap ggufreap
