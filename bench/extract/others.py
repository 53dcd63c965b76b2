"""Runs trafilatura and readability-lxml over a folder of labelled pages.

    pip install trafilatura readability-lxml lxml_html_clean
    python others.py FOLDER

writes FOLDER/trafilatura.json and FOLDER/readability-lxml.json: the text that each found, by page, and the
CPU seconds that it took. The program beside this file scores them.
"""
import glob, gzip, json, logging, os, sys, time

import html as entities
import lxml.html
import readability
import trafilatura

logging.disable(logging.CRITICAL)
folder = sys.argv[1]
pages = sorted(glob.glob(os.path.join(folder, "html", "*.html*")))


def body(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


def run_trafilatura(b):
    return trafilatura.extract(b, include_comments=False, include_tables=True) or ""


def run_readability(b):
    summary = readability.Document(b.decode("utf-8", "replace")).summary()
    blocks = []
    for e in lxml.html.fromstring(summary).iter():
        if isinstance(e.tag, str):
            blocks.append(e.text or "")
        blocks.append(e.tail or "")
    return " ".join(blocks)


for name, run in (("trafilatura", run_trafilatura), ("readability-lxml", run_readability)):
    texts, seconds = {}, 0.0
    for path in pages:
        b = body(path)
        start = time.process_time()
        try:
            text = run(b)
        except Exception as e:
            text = ""
        seconds += time.process_time() - start
        texts[os.path.basename(path).split(".html")[0]] = text
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump({"seconds": seconds, "texts": texts}, f)
    print(name, round(seconds, 1), "s")
