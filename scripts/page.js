// `npm run page [FOLDER]`: the page of packages/page, by default in build/page.
//
// - `index.html`: the page in one file, which also works from file:// because it contains the program of its worker.
// - `rocev2-lab.js`: the element `<rocev2-lab scene="livelock">`, which shows the page in others.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { browserModules, nodeModulesIn } from './browser-modules.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const VIEW = 'packages/page/src/view';
/** The page and its worker, which may run code of the user, reach no network. Evaluation is for that code. */
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; img-src data:";

async function programOf(entry) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    conditions: ['@rocev2/source'],
    plugins: [browserModules],
    metafile: true,
    write: false,
    logLevel: 'error', // Modules that are left out use import.meta.
  });
  const left = nodeModulesIn(metafile);
  if (left.length > 0) throw new Error(`${entry} needs Node.js: ${left.join('; ')}`);
  return outputFiles[0].text;
}

/** Text for `<script>`, which ends at the first end tag. */
function inScript(text) {
  return text.replaceAll('</script', '<\\/script');
}

/**
 * Writes the page into a folder, and returns the size of `index.html` when compressed. `documents` is the address of
 * documents to which the page links.
 */
export async function buildPage(folder, { documents = '' } = {}) {
  const [program, worker, labElement] = await Promise.all(
    ['main', 'worker', 'lab-element'].map((name) => programOf(`${VIEW}/${name}.ts`)),
  );
  const styles = ['packages/dashboard/src/page/style.css', `${VIEW}/page.css`];
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rocev2</title>
<link rel="icon" href="data:,">${documents && `\n<link rel="help" href="${documents}">`}
<style>${styles.map((path) => readFileSync(join(ROOT, path), 'utf8')).join('\n')}</style>
</head>
<body>
<noscript>This page simulates networks and needs JavaScript.</noscript>
<script type="text/plain" id="worker-program">${inScript(worker)}</script>
<script>${inScript(program)}</script>
</body>
</html>
`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'index.html'), html);
  writeFileSync(join(folder, 'rocev2-lab.js'), labElement);
  return gzipSync(html).length;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2] ?? join(ROOT, 'build/page');
  const bytes = await buildPage(folder);
  process.stdout.write(`${join(folder, 'index.html')}: ${(bytes / 1000).toFixed(0)} KB compressed\n`);
}
