/** Command lines of `rocev2` in documents and help texts: finding them, cutting them into words. */

/** The arguments of every `rocev2 ...` that stands where a shell would run it. What follows two spaces is a remark. */
export function commandLines(code: string): string[][] {
  return code
    .replaceAll('\\|', '|') // as a table has to write it
    .split(/\n|\s{2,}|; | && /)
    .map((part) => /^(?:\S*[$#] )?(?:source <\()?(?:npx )?rocev2 (.*)/.exec(part.trim())?.[1])
    .filter((rest) => rest !== undefined)
    .map(shellWords);
}

/** Lines whose remark would be passed to the command by whoever copies them: a remark begins with `#`. */
export function unmarkedRemarks(code: string): string[] {
  return code.split('\n').filter((line) => /^\s*(?:\$ )?(?:npx )?(?:rocev2|npm) .*?\S {2,}[^\s#[|&>-]/.test(line));
}

/** Words up to a pipe, a redirection, `&` or a comment; quotes hold words together. */
export function shellWords(text: string): string[] {
  const words: string[] = [];
  for (const [word] of text.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (/^[|&>#]/.test(word) || word === ')') break;
    words.push(word.replaceAll(/['"]|\)$/g, ''));
  }
  return words;
}

/** A synopsis shows what could be said: `[--json]`, `a|b`, `FILE`, `...`. */
export function isSynopsis(words: readonly string[]): boolean {
  return words.some((word) => /[[\]]|\.\.\.|^[A-Z]+$|=$/.test(word) || (word.includes('|') && !word.includes('>')));
}
