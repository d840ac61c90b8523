#compdef ggufreap
# Completion of ggufreap in zsh. To load it now:  source <(ggufreap completion zsh)
# For all shells: put the output as _ggufreap into a folder of $fpath.

_ggufreap() {
    local line paths tab=$'\t'
    local -a plain equal
    for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
        :*) paths=$line ;;
        *=$tab*) equal+=("${line%%$tab*}") ;;
        *) plain+=("${${line%%$tab*}//:/\\:}:${line#*$tab}") ;;
        esac
    done
    case $paths in
    :files) _files ;;
    :folders) _files -/ ;;
    *)
        (( $#equal )) && compadd -S '' -- $equal
        (( $#plain )) && _describe ggufreap plain
        ;;
    esac
}

if [[ $funcstack[1] == _ggufreap ]]; then
    _ggufreap "$@"
else
    compdef _ggufreap ggufreap
fi
