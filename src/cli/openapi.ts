/** Writes the description of the API. */
import { writeFileSync } from 'node:fs';
import { openapiOf } from '../http/openapi.js';
import { withPages } from '../http/pages.js';
import { type RoutePorts, routesOf } from '../http/routes.js';
import { StartError } from '../lifecycle.js';
import { argumentsOf, Misuse } from './arguments.js';
import { commandOf } from './command.js';

export const main = commandOf({
  name: 'openapi',
  ...argumentsOf({
    form: 'npm run openapi [-- FILE]',
    about: `Writes the description of the API, an OpenAPI 3.1 document as JSON, to FILE or to standard output. A running service
serves the same at /openapi.json.`,
    options: {},
    notes: 'It needs no servers.',
    read: (_, { operands: [file = null, ...more] }) => {
      if (more.length > 0) throw new Misuse('at most one FILE is needed');
      return { file };
    },
  }),
  work: async ({ print }, { file }) => {
    // Its handlers are never called, so they need nothing.
    const document = JSON.stringify(openapiOf(withPages(routesOf({} as RoutePorts))), null, 2);
    if (file === null) print(document);
    else write(file, document);
  },
});

function write(file: string, document: string): void {
  try {
    writeFileSync(file, `${document}\n`);
  } catch (cause) {
    throw new StartError(`${file} cannot be written: ${(cause as Error).message}`, { cause });
  }
}
