// @ts-check

/**
 * The page with `content` between a line that begins `<!-- begin of NAME,` and the line `<!-- end of NAME -->`.
 * @param {string} page @param {string} name @param {string} content
 */
export function withRegion(page, name, content) {
  const begin = page.indexOf(`<!-- begin of ${name},`);
  const from = page.indexOf('\n', begin) + 1;
  const to = page.indexOf(`<!-- end of ${name} -->`);
  if (begin < 0 || to < from) throw new Error(`the page has no region ${name}`);
  return `${page.slice(0, from)}\n${content.trimEnd()}\n\n${page.slice(to)}`;
}
