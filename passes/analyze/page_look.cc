#include "passes/analyze/page_look.h"

namespace ascend_fuse {

std::string_view PageStyle() {
  return R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --card: #f4f6f8; --line: #d5dae0; --dim: #57606a; --link: #0550ae;
  --before: #8c96a2; --after: #1f6feb; --good: #1a7f4b; --warn: #b35900; --bad: #c1272d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171b; --card: #1e2329; --line: #363d46; --dim: #a0a9b4;
  --link: #79b8ff; --before: #77818d; --after: #58a6ff; --good: #4cc38a; --warn: #f0a04b; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 14px/1.45 system-ui, sans-serif; }
header, main, footer { max-width: 96rem; margin: 0 auto; padding: 0 1.2rem; }
h1 { font-size: 1.3rem; margin: .8rem 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 0 0 .4rem; }
p { margin: .25rem 0; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.small, small { color: var(--dim); font-size: .88rem; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: .5rem; top: .5rem; background: var(--paper); padding: .4rem; }
.bar-of-page { position: sticky; top: 0; z-index: 2; background: var(--paper); border-bottom: 1px solid var(--line); padding: .4rem 0; }
.bar-of-page div { max-width: 96rem; margin: 0 auto; padding: 0 1.2rem; display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: center; }
.bar-of-page input { font: inherit; padding: .25rem .5rem; width: 16rem; max-width: 60vw; background: var(--card); color: inherit;
  border: 1px solid var(--dim); border-radius: 4px; }
button { font: inherit; color: inherit; cursor: pointer; }
.bar-of-page button { background: var(--card); border: 1px solid var(--dim); border-radius: 4px; padding: .2rem .6rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.6rem, 1fr)); gap: .6rem; margin: .7rem 0; padding: 0; }
.cards div, .answers section { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .55rem .75rem; min-width: 0; }
.cards dt { color: var(--dim); }
.cards dd { margin: 0; overflow-wrap: anywhere; }
.cards .big { font-size: 1.25rem; font-weight: 600; display: block; line-height: 1.25; }
.answers { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .6rem; }
.answers ol { margin: 0; padding-left: 1.3rem; }
.answers ul { margin: 0; padding: 0; list-style: none; }
.answers li { margin: 0 0 .45rem; overflow-wrap: anywhere; }
@media (max-width: 60rem) { .answers { grid-template-columns: minmax(0, 1fr); } .bar-of-page { position: static; } }
.row > :last-child { white-space: nowrap; }
.row { display: flex; gap: .5rem; justify-content: space-between; }
code.command { display: block; background: var(--paper); border: 1px solid var(--line); border-radius: 4px; padding: .2rem .4rem;
  margin: .2rem 0; font-size: .85rem; }
code.command span { display: inline-block; max-width: 100%; overflow-wrap: anywhere; }
.table { overflow-x: auto; margin: .3rem 0 1rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--dim); padding: .2rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; font-weight: normal;
  min-width: 4rem; }
tbody th, td li, td .small { overflow-wrap: anywhere; }
td.words { min-width: 16rem; }
td summary { white-space: nowrap; }
td:has(> .bar) { min-width: 10rem; } tbody th { min-width: 9rem; }
@media (min-width: 60rem) { tbody th { min-width: 13rem; } }
thead th { font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead button { all: unset; cursor: pointer; font-weight: 600; }
thead button:focus-visible { outline: 2px solid var(--link); }
th[aria-sort=ascending] button::after { content: " \2191"; }
th[aria-sort=descending] button::after { content: " \2193"; }
.bar { display: inline-block; width: 6rem; height: .65rem; margin-right: .4rem; background: var(--line); vertical-align: baseline; }
.bar i { display: block; height: 100%; background: var(--after); }
td .bar { float: left; margin-top: .3rem; }
.full .bar { display: block; width: 100%; }
.before .bar i { background: var(--before); }
.state { font-weight: 600; white-space: nowrap; }
.fused, .low { color: var(--good); } .by_ge { color: var(--dim); } .left, .medium { color: var(--warn); } .high { color: var(--bad); }
summary { cursor: pointer; }
td ul { margin: .2rem 0; padding-left: 1.2rem; }
.fold > summary { font-weight: 600; padding: .3rem 0; }
svg { max-width: 100%; height: auto; }
svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }
svg .frame { fill: none; stroke: var(--line); } svg .was { fill: none; stroke: var(--before); stroke-width: 2; }
svg .is { fill: none; stroke: var(--after); stroke-width: 2; } svg .node { fill: var(--card); stroke: var(--dim); }
svg .new { fill: var(--card); stroke: var(--after); stroke-width: 2; } svg .edge { fill: none; stroke: var(--dim); }
.sketch { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
.sketch figure { margin: .4rem 0; overflow-x: auto; max-width: 100%; }
[hidden] { display: none !important; }
@page { margin: 12mm; }
@media print { .bar-of-page, .skip { display: none; } html { font-size: 10px; } body { font-size: 9px; background: #fff; }
  header, main, footer { padding: 0; } .table { overflow: visible; } th, td, tbody th, td.words { min-width: 0; padding-right: .5rem; }
  td:has(> .bar) { min-width: 0; }   td.number .small, thead th { white-space: normal; overflow-wrap: anywhere; } .bar { width: 3rem; } svg { max-height: 18cm; }
  tr, .cards div, .answers section { break-inside: avoid; } h2 { break-after: avoid; } .answers { grid-template-columns: repeat(3, 1fr); } }
)";
}

std::string_view PageScript() {
  return R"('use strict';
const all = (query, of = document) => Array.from(of.querySelectorAll(query));
for (const heading of all('thead th')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener('click', () => {
    const headings = all('th', heading.parentNode), column = headings.indexOf(heading);
    const number = heading.classList.contains('number'), was = heading.getAttribute('aria-sort');
    const down = was ? was === 'ascending' : number;
    for (const other of headings) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const body = heading.closest('table').tBodies[0], sign = down ? -1 : 1;
    const key = row => { const cell = row.cells[column]; return 'v' in cell.dataset ? Number(cell.dataset.v) : cell.textContent; };
    const rows = Array.from(body.rows, row => [key(row), row]);
    rows.sort((a, b) => sign * (typeof a[0] === 'number' && typeof b[0] === 'number' ? a[0] - b[0] : String(a[0]).localeCompare(String(b[0]))));
    body.append(...rows.map(pair => pair[1]));
  });
}
const search = document.getElementById('search'), told = document.getElementById('told');
const rows = all('main table tbody tr').map(row => [row, row.textContent.toLowerCase()]);
const folds = all('details.fold');
const find = () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const [row, text] of rows) {
    row.hidden = !words.every(word => text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  if (words.length) for (const fold of folds) fold.open = all('tbody tr:not([hidden])', fold).length > 0;
  told.textContent = words.length ? shown + ' of ' + rows.length + ' rows' : '';
};
search.addEventListener('input', find);
document.getElementById('unfold').addEventListener('click', event => {
  const open = folds.some(fold => !fold.open);
  for (const fold of folds) fold.open = open;
  event.target.textContent = open ? 'fold all' : 'unfold all';
});
let closed = [];
addEventListener('beforeprint', () => { closed = folds.filter(fold => !fold.open); for (const fold of closed) fold.open = true; });
addEventListener('afterprint', () => { for (const fold of closed) fold.open = false; });
for (const tool of all('[data-script]')) tool.hidden = false;
if (search.value) find();
)";
}

std::string_view PageScriptHash() { return "1bqK9DR5Wg9Ap/4qTP0mHeB/c6KAEd9fZiWl3u0XC3I="; }

}  // namespace ascend_fuse
