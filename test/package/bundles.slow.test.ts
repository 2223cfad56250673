/** Programs of users in bundles of esbuild: they run as they do from node_modules, or say what the bundle lacks. */

import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { projectWithPackage } from '../support/installed-package.js';
import { EXAMPLES, exampleText, type Format, run } from './programs.js';

const FORMATS: readonly Format[] = ['esm', 'cjs'];

describe.runIf(isBuilt)('a bundle of esbuild', () => {
  let project: string;
  /** A folder from which no package can be found. */
  let bare: string;
  beforeAll(() => {
    project = projectWithPackage();
    bare = realpathSync(mkdtempSync(join(tmpdir(), 'rocev2-bare-')));
  }, 180_000);
  afterAll(() => {
    for (const folder of [project, bare]) rmSync(folder, { recursive: true, force: true });
  });
  let bundles = 0;

  /** Bundles a program, and the engine thread where it is wanted; returns the file to run. */
  async function bundle(text: string, format: Format, { at = project, engineThread = false, splitting = false } = {}) {
    const folder = join(at, `bundle-${++bundles}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: format === 'esm' ? 'module' : 'commonjs' }));
    const source = join(project, `program-${bundles}.js`);
    writeFileSync(source, text);
    await build({
      entryPoints: { app: source, ...(engineThread && { 'engine-thread': 'rocev2/engine-thread' }) },
      absWorkingDir: project,
      outdir: folder,
      bundle: true,
      minify: true,
      platform: 'node',
      format,
      splitting,
      logLevel: 'silent',
    });
    return join(folder, 'app.js');
  }

  describe.each(FORMATS)('(%s)', (format) => {
    it.each(EXAMPLES)('of examples/%s.js runs', async (name, prints) => {
      const { output, code } = await run(await bundle(exampleText(name, format), format));
      expect(output).toMatch(prints);
      expect(code).toBe(0);
    });

    const inWorkers = format === 'esm' ? EXAMPLES : EXAMPLES.slice(0, 1);
    it.each(inWorkers)(
      'of examples/%s.js runs with NICs in workers, its engine thread beside it',
      async (name, prints) => {
        const app = await bundle(exampleText(name, format, "engine: 'worker'"), format, { engineThread: true });
        const { output, code } = await run(app);
        expect(output).toMatch(prints);
        expect(code).toBe(0);
      },
    );

    it('finds native packages beside it, and runs where there are none', async () => {
      const text = `${exampleText('verbs', 'esm')}\nconsole.log(a.device.portDescription);`.replace(/^import.*\n/m, '');
      const imports = "import { Access, checkCompletion, openDevice } from 'rocev2';\n";
      const program = format === 'esm' ? imports + text : `${imports}(async () => {${text}\n})();`;
      const [rich, poor] = [await bundle(program, format), await bundle(program, format, { at: bare })];
      const native = existsSync(`node_modules/@koromix/koffi-linux-${process.arch}`);
      expect((await run(rich)).output).toMatch(native ? /koffi options\)/ : /no koffi options/);
      const alone = await run(poor);
      expect(alone.output).toMatch(/bad key {2}REM_ACCESS_ERR\nudp 127\.0\.1\.1 \(node:dgram, no koffi options/);
      expect(alone.code).toBe(0);
    });

    it('without an engine thread says which file it needs, and how to name it', async () => {
      const { output, code } = await run(await bundle(opening("engine: 'worker'", format), format));
      expect(output).toMatch(
        /^RoceError ERR_ROCE_NOT_FOUND .*engine-thread.*\(bundles need rocev2\/engine-thread.*workerUrl: docs\/how-to\/deploy\.md\)\n$/,
      );
      expect(code).toBe(0);
    });

    it('without telemetry says which import it needs; with it serves what needs no package', async () => {
      const options = "estats: { http: '127.0.1.3:0' }";
      const without = await run(await bundle(opening(options, format), format));
      expect(without.output).toMatch(
        /^RoceError ERR_ROCE_NOT_FOUND .*\(add import 'rocev2\/telemetry' to the program: docs\/how-to\/deploy\.md\)\n$/,
      );
      const program = `import 'rocev2/telemetry';\n${opening(options, format)}`;
      expect((await run(await bundle(program, format))).output).toBe('open\n');
    });
  });

  it('with code splitting finds the engine thread beside its pieces', async () => {
    const app = await bundle(exampleText('hello', 'esm', "engine: 'worker'"), 'esm', {
      engineThread: true,
      splitting: true,
    });
    expect((await run(app)).output).toMatch(EXAMPLES[0][1]);
  });

  it('finds an engine thread of another name by workerUrl, and refuses a file that is none', async () => {
    const named = (url: string) => opening(`engine: 'worker', workerUrl: ${url}`, 'esm');
    const app = await bundle(named("new URL('./nic.js', import.meta.url)"), 'esm', { engineThread: true });
    const text = `import './engine-thread.js';`;
    writeFileSync(join(app, '../nic.js'), text);
    expect((await run(app)).output).toBe('open\n');
    const itself = await bundle(named('import.meta.url'), 'esm');
    expect((await run(itself)).output).toMatch(/workerUrl does not name rocev2\/engine-thread/);
    const relative = await bundle(named("'./nic.js'"), 'esm');
    expect((await run(relative)).output).toMatch(
      /^RoceError ERR_ROCE_MALFORMED workerUrl '\.\/nic\.js' is neither a URL nor/,
    );
  });
});

/** A program that opens a device with these options and prints what comes of it. */
function opening(options: string, format: Format): string {
  const body = `await openDevice({ address: '127.0.1.3', udpPort: 0, ${options} }).then(
    async (device) => { await device.close(); console.log('open'); },
    (error) => console.log(error.name, error.code, error.message),
  );`;
  return `import { openDevice } from 'rocev2';\n${format === 'esm' ? body : `(async () => {${body}})();`}`;
}
