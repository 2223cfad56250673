// @ts-check
/** The documentation site: `npm run docs:site` writes it into `site/`. The pages of the API come from ../../typedoc.json. */

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  extends: ['../../typedoc.json'],
  name: 'rocev2',
  out: '../../site',
  // Each of these lists the documents of its part in its head; test/docs/site.test.ts finds documents that no part lists.
  projectDocuments: [
    'guides.md',
    'how-to.md',
    'programs.md',
    'library.md',
    'protocol.md',
    'measurements.md',
    'packages.md',
    'decisions.md',
    'project.md',
  ],
  customCss: 'style.css',
  sort: ['kind', 'instance-first', 'alphabetical-ignoring-documents'],
  kindSortOrder: [
    'Document',
    'Project',
    'Module',
    'Namespace',
    'Class',
    'Function',
    'Interface',
    'TypeAlias',
    'Variable',
  ],
  hideGenerator: true,
  searchInComments: true,
  searchInDocuments: true,
  highlightLanguages: ['bash', 'console', 'dockerfile', 'html', 'ini', 'javascript', 'json', 'typescript'],
  ignoredHighlightLanguages: ['text'],
  markdownItLoader: showPlainTextPlainly,
  validation: { notExported: true, invalidLink: true, notDocumented: true, invalidPath: true, rewrittenLink: true },
};

/**
 * Code without a language is output of a program; TypeDoc would colour it as TypeScript.
 * @param {any} parser markdown-it
 */
function showPlainTextPlainly(parser) {
  parser.core.ruler.push('plain-text', (/** @type {any} */ state) => {
    for (const token of state.tokens) {
      if (token.type === 'fence' && token.info === '') token.info = 'text';
      if (token.type === 'code_block') Object.assign(token, { type: 'fence', tag: 'code', info: 'text' });
    }
  });
}
