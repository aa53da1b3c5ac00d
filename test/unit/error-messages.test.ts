/** Form of the error messages that callers receive. With PRINT_MESSAGES=1 the test prints the list. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript-5';
import { root } from '../support/runner/root.js';

const sources = /^(src\/(app|compute|contracts|http|services|store|errors|concurrency)\b|workers\/).*\.ts$/;
const firstArgument = /^(invalid|unavailable|unauthorized|forbidden|unsupported)$/;
const names = /^(rejectionMessages?|framingProblem|\w+(Timeout|Limit|Exhausted)Message)$/;
const oldWords = /\b(again later|anew|at once|beside|kept|meanwhile|nobody|refused?|right now|told|whose)\b/i;

const files = ['src', 'workers']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((file) => `${folder}/${file}`),
  )
  .filter((file) => sources.test(file));

/** Expressions in a template become `{…}`. */
function readTexts(node: ts.Node, constants: ReadonlyMap<string, ts.Node>): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node)) return [node.getText().slice(1, -1).replaceAll('${', '{')];
  const parts: (ts.Node | undefined)[] = [];
  if (ts.isIdentifier(node)) parts.push(constants.get(node.text));
  if (ts.isConditionalExpression(node)) parts.push(node.whenTrue, node.whenFalse);
  if (ts.isObjectLiteralExpression(node)) parts.push(...node.properties);
  if (ts.isPropertyAssignment(node)) parts.push(node.initializer);
  return parts.flatMap((part) => (part === undefined ? [] : readTexts(part, constants)));
}

function listMessages(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const constants = new Map<string, ts.Node>();
  const found: (ts.Node | undefined)[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const name = node.expression.getText();
      if (firstArgument.test(name)) found.push(node.arguments?.[0]);
      if (name === 'ApiError') found.push(node.arguments?.[1]);
      if (name === 'this.setOutcome') found.push(node.arguments?.[2]);
    } else if (ts.isBinaryExpression(node) && names.test(node.left.getText())) found.push(node.right);
    else if (ts.isVariableDeclaration(node) || ts.isPropertyAssignment(node)) {
      if (names.test(node.name.getText())) found.push(node.initializer);
      if (ts.isVariableDeclaration(node) && node.initializer)
        constants.set(node.name.getText(), node.initializer);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return found.flatMap((node) => (node === undefined ? [] : readTexts(node, constants)));
}

test('Error messages are sentences in current terms', () => {
  const messages = [...new Set(files.flatMap(listMessages))].filter((text) => text !== '').sort();
  if (process.env.PRINT_MESSAGES === '1') process.stdout.write(`${messages.join('\n')}\n`);
  assert.ok(messages.length > 90, `${messages.length} messages`);
  const unclear = messages.filter((text) => !/^[A-Z{].*\.$/s.test(text) || oldWords.test(text));
  assert.deepEqual(unclear, []);
});
