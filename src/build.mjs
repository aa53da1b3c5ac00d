// Builds everything with esbuild: node src/build.mjs OUT [--bundles | --watch]. Does not check types.
//   OUT/bundle/*.js                  programs; bundles start five times as fast as 1,400 files
//   OUT/bundle/{docs,dashboard}/*    pages, compressed and named by content hash
//   OUT/{src,workers,bench,test}/**  modules, for tests and benchmarks
//   OUT/client/index.js              client, for Node, browsers, Deno and Bun
//   OUT/typebox/*.js                 TypeBox for the modules: its 700 files take 0.25 s to load
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, context } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const SOURCES = ['src', 'workers', 'bench', 'test'];

/** Commands by the room of src/cli. */
const CLI = {
  import: ['import'],
  export: ['export'],
  models: ['fit', 'evaluate', 'backtest'],
  demo: ['demo'],
  operations: ['audit', 'keys', 'openapi', 'parked', 'rebuild', 'retain'],
};
const THREADS = ['track', 'forecast', 'fit', 'rebuild', 'rewrite', 'deliver'];

/**
 * Bundles of a group share chunks. Programs that start with the service have separate groups: thirty chunks
 * took a third of a thread's start time.
 */
const GROUPS = [
  { main: 'src/main.ts', app: 'src/app/app.ts' },
  { 'api-process': 'src/app/processes/api-process.ts' },
  ...THREADS.map((name) => ({ [name]: `workers/${name}.ts` })),
  { clickhouse: 'src/embedded/clickhouse/server.ts' },
  { 'engine-thread': 'src/embedded/clickhouse/engine-thread.ts' },
  { 'local-query': 'src/embedded/clickhouse/local-query.ts' },
  { 'source-maps': 'src/source-maps.ts' },
  Object.fromEntries(
    Object.entries(CLI).flatMap(([room, names]) =>
      names.map((name) => [`cli-${name}`, `src/cli/${room}/${name}.ts`]),
    ),
  ),
];

const OUTSIDE = ['uWebSockets.js', 'chdb', 'piscina'];

/** Loads source maps first, then defines what packages written for `require` expect. */
const BANNER = `import './source-maps.js';
import { createRequire as $require } from 'node:module';
import { dirname as $dirname } from 'node:path';
import { fileURLToPath as $path } from 'node:url';
const require = $require(import.meta.url);
const __filename = $path(import.meta.url);
const __dirname = $dirname(__filename);`;

const COMMON = {
  absWorkingDir: ROOT,
  platform: 'node',
  target: 'node20',
  // Stack traces need no source text.
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'warning',
  logLimit: 20,
};

const sourceFiles = () =>
  SOURCES.filter((folder) => existsSync(join(ROOT, folder))).flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /(?<!\.d)\.ts$|\.js$/.test(name))
      .map((name) => join(folder, name)),
  );

/** Skips missing files: tests of the set-up build a service of a few files. */
const present = (group) =>
  Object.fromEntries(Object.entries(group).filter(([, file]) => existsSync(join(ROOT, file))));

const bundles = (out, group) => ({
  ...COMMON,
  entryPoints: present(group),
  outdir: join(out, 'bundle'),
  bundle: true,
  splitting: true,
  format: 'esm',
  chunkNames: 'chunk-[hash]',
  external: OUTSIDE,
  // Without comments the output is ASCII, which V8 stores in half the memory. Node prints the line of an
  // uncaught error, so lines are short.
  minifyWhitespace: true,
  lineLimit: 120,
  // msgpackr's native code only speeds up reading, which BullMQ does not use. The search for it takes 30 ms.
  define: { 'process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED': '"true"' },
  banner: { js: BANNER },
});

/** Piscina tries `require` first (workers/entry.cts). */
const threadEntry = (out) => ({
  ...COMMON,
  entryPoints: ['workers/entry.cts'].filter((file) => existsSync(join(ROOT, file))),
  outdir: join(out, 'bundle'),
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
});

/** With `neutral`, the build fails if the client imports a Node module. */
const client = (out) => ({
  ...COMMON,
  entryPoints: ['src/client/index.ts'].filter((file) => existsSync(join(ROOT, file))),
  outdir: join(out, 'client'),
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
});

const modules = (out) => ({
  ...COMMON,
  entryPoints: sourceFiles(),
  outdir: out,
  outbase: ROOT,
  format: 'esm',
  bundle: true,
  plugins: [importsStay],
});

const TYPEBOX = ['typebox', 'typebox/compile', 'typebox/format', 'typebox/value'];
const flat = (name) => name.replace('/', '-');

/** Leaves imports unbundled. TypeBox is mapped to package.json's `imports`. */
const importsStay = {
  name: 'imports-stay',
  setup: ({ onResolve }) =>
    onResolve({ filter: /.*/ }, ({ path, kind }) =>
      kind === 'entry-point'
        ? undefined
        : { path: TYPEBOX.includes(path) ? `#typebox/${flat(path)}.js` : path, external: true },
    ),
};

const typebox = (out) => ({
  ...COMMON,
  sourcemap: false,
  entryPoints: Object.fromEntries(TYPEBOX.map((name) => [flat(name), name])),
  outdir: join(out, 'typebox'),
  bundle: true,
  splitting: true,
  format: 'esm',
});

const PAGES = { docs: 'page.js', dashboard: 'main.tsx' };

/** Parts of the script that a page imports dynamically are separate files. All styles are one file. */
async function buildPage(out, name, entry) {
  const source = join('src/pages', name);
  if (!existsSync(join(ROOT, source))) return;
  const [scripts, whole] = await Promise.all(
    [true, false].map((splitting) =>
      build({
        absWorkingDir: ROOT,
        entryPoints: { page: join(source, entry) },
        outdir: ROOT,
        // Names contain content hashes, for long caching.
        entryNames: '[name].[hash]',
        chunkNames: 'part.[hash]',
        bundle: true,
        splitting,
        minify: true,
        format: 'esm',
        target: 'es2022',
        jsx: 'automatic',
        jsxImportSource: 'preact',
        legalComments: 'none',
        metafile: true,
        write: false,
      }),
    ),
  );
  const isOf = (type) => (file) => file.path.endsWith(type);
  const files = [...scripts.outputFiles.filter(isOf('.js')), ...whole.outputFiles.filter(isOf('.css'))];
  const folder = join(out, 'bundle', name);
  mkdirSync(folder, { recursive: true });
  let page = readFileSync(join(ROOT, source, 'index.html'), 'utf8');
  for (const { path, contents } of files) {
    const file = basename(path);
    page = page.replace(file.replace(/\.\w+(?=\.\w+$)/, ''), `${name}/${file}`);
    writeFileSync(join(folder, `${file}.gz`), gzipSync(contents, { level: 9 }));
  }
  writeFileSync(join(folder, 'index.html'), page);
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(Object.keys(whole.metafile.inputs)));
}

function licencesOf(files) {
  const folders = files.flatMap((file) => file.match(/.*node_modules\/(@[^/]+\/)?[^/]+/)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => /^(licen[cs]e|notice)|license\.txt$/i.test(name))
      .map((name) => `${folder}/${name}\n\n${readFileSync(join(ROOT, folder, name), 'utf8')}`),
  );
  return texts.join('\n\n');
}

async function main([out = 'dist', option]) {
  const all = [
    ...GROUPS.map((group) => bundles(out, group)),
    threadEntry(out),
    client(out),
    ...(option === '--bundles' ? [] : [modules(out), typebox(out)]),
  ];
  for (const [name, entry] of Object.entries(PAGES)) await buildPage(out, name, entry);
  if (option !== '--watch') return void (await Promise.all(all.map(build)));
  for (const one of all) await (await context(one)).watch();
}

await main(process.argv.slice(2)).catch((error) => {
  if (error.errors === undefined) throw error;
  process.exitCode = 1;
});
