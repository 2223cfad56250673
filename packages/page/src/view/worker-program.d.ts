/** The text of `worker.ts`, bundled by scripts/page.js. */
declare module 'worker-program' {
  const program: string;
  export default program;
}
