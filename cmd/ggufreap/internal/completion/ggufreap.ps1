# Completion of ggufreap in PowerShell. To load it now:
#   ggufreap completion powershell | Out-String | Invoke-Expression
# For all sessions, put that line into $PROFILE.

Register-ArgumentCompleter -Native -CommandName ggufreap -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $typed = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition -or $_.Extent.Text -ne $wordToComplete } |
        ForEach-Object { $_.ToString() })
    $program = $typed[0]
    $before = @($typed | Select-Object -Skip 1)
    # An empty argument would be dropped: older versions pass none on to a program.
    & $program __complete "--last=$wordToComplete" -- @before 2>$null | ForEach-Object {
        $word, $means = $_ -split "`t", 2
        switch ($word) {
            ':none' { }
            ':files' { [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete) }
            ':folders' {
                [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete) |
                    Where-Object { $_.ResultType -eq 'ProviderContainer' }
            }
            default {
                if (-not $means) { $means = $word }
                [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $means)
            }
        }
    }
}
