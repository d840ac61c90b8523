# Completion of ggufreap in fish. To load it now:  ggufreap completion fish | source
# For all shells of a user:  ggufreap completion fish > ~/.config/fish/completions/ggufreap.fish

function __ggufreap_complete
    set -l typed (commandline -opc) (commandline -ct)
    set -l current (commandline -ct)
    for line in ($typed[1] __complete -- $typed[2..-1] 2>/dev/null)
        switch $line
            case :none
            case :files
                __fish_complete_path (string replace -r '^--?[a-z-]+=' '' -- $current)
            case :folders
                __fish_complete_directories (string replace -r '^--?[a-z-]+=' '' -- $current)
            case '*'
                echo $line
        end
    end
end

complete -c ggufreap -f -a '(__ggufreap_complete)'
