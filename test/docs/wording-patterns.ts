/** Expressions that mark unidiomatic English, each with what to write instead. */

export interface WordingPattern {
  readonly pattern: RegExp;
  /** What a writer does about a match. */
  readonly advice: string;
}

const pattern = (expression: RegExp, advice: string): WordingPattern => ({ pattern: expression, advice });

/** For all texts: documents, help, messages, docstrings of the public API. */
export const PATTERNS: readonly WordingPattern[] = [
  pattern(
    /(?:(?<=^)|(?<=[.;:|(] )|(?<=\band )|(?<=\bto )|(?<=\bby )|(?<=\bfor )|(?<=\bof )|(?<=\bthan ))[Ww]ho (?:has|had|have|asks?|reads?|wants?|comes?|opens?|names?|knows?|sees?|may|can|only|never|READs|writes?|serves?|leads?|appends?|reaches|waits?|owns?|stands?|needs?|sends?|makes?|connects?|answers?|drops?|looks?|uses?|posts?)\b/gmu,
    'name the actor: a client that ...',
  ),
  pattern(/\b[Ww](?:ho|hat|hich)ever\b/gu, 'name the actor or the thing: any client that ...'),
  pattern(
    /(?:(?<=[.;:] )|(?<=\| ))What (?!(?:is|are|do|does|can|should|happens) [^.]*\?)[a-z]+/gu,
    'begin the sentence with its subject',
  ),
  pattern(
    /\b(?:of|to|from|for|with|by|in|than|and|has|have|had|shows?|says?|keeps?|takes?|sends?) what (?:it|they|is|was|are|were|has|had|have|came|comes|the|a|an|nobody|others?|arrives?|follows)\b/gu,
    'name the thing instead of "what ..."',
  ),
  pattern(/\bthat there (?:is|are)\b|\bone that there\b/gu, 'say "each X" or "all X"'),
  pattern(/\bto be (?:had|seen|told)\b/gu, 'say "available", "visible" or "notified"'),
  pattern(/\b(?:is|are|was|were|be|been|being|not) told\b/gu, 'say "learns", "is notified" or "is distinguished"'),
  pattern(/\bso (?:many|much|long|often)\b(?! (?:that|as|more)\b)/gu, 'say "that many", "this long", or the number'),
  pattern(/\banew\b/gu, 'say "again", "restart" or "new"'),
  pattern(/\b[Mm]eanwhile\b/gu, 'say "during this time", or delete it'),
  pattern(/\bin (?:the )?place of\b/gu, 'say "instead of"'),
  pattern(/\b[Bb]eside\b/gu, 'say "compared with", "next to" or "alongside"'),
  pattern(/\bbehind (?:it|that|them|what|which|the last|a |each|every|one|\d)/gu, 'say "after"'),
  pattern(/\bunder way\b/gu, 'say "in flight", "in progress" or "outstanding"'),
  pattern(/\b(?:goes|go|went|going) on\b(?! (?:the|a)\b)/gu, 'say "continues"'),
  pattern(/\bfor (?:ever|life|good)\b/gu, 'say "indefinitely" or "permanently"'),
  pattern(/\b(?:stands?|stood) (?:in|at|still|beside|between|on|near|for|above|behind)\b/gu, 'say "is" or "is listed"'),
  pattern(/\bany more\b|\bno more[.,;:]/gu, 'say "no longer"'),
  pattern(/, too\b/gu, 'say "also"'),
  pattern(
    /\bof (?:its|their|one's|his|your|our) own\b|\bof (?:ours|theirs)\b/gu,
    'say "its own X", "our X" or "a separate X"',
  ),
  pattern(
    /\b(?:crank|doors?|crowd(?:ed)?(?:Out)?|twins?|strangers?|rivals?|whereabouts|the way back)\b/gu,
    'use the term of the field: engine loop, listener, quota, negative control, unauthenticated peer',
  ),
  pattern(/\b(?:summed|[Ss]ums)\b/gu, 'say "checksum" or "checksummed"'),
  pattern(/\(load \d|\bload \d+(?: to \d+)?\b/gu, 'conditions of a run belong in the record of the run'),
  pattern(/\b(?:he|his|him|himself)\b/gu, 'name the peer, or say "they"'),
];
