# Writes the list that TestTableAgainstPyObjC compares the table with: the encodings that pyobjc's metadata has for the
# messages of metal/apple/objc/selectors.go. From this folder:
#
#     pip download --no-deps --only-binary :all: --platform macosx_10_9_universal2 pyobjc-framework-Metal==12.2.2
#     unzip -o pyobjc_framework_metal-*.whl Metal/_metadata.py && python3 pyobjc.py Metal/_metadata.py > pyobjc.txt
import re
import sys

seen = {}


class Any:
    """Whatever the metadata asks of objc that does not matter here."""

    arch = "arm64"

    def __getattr__(self, name):
        return Any()

    def __call__(self, *args, **kwargs):
        return Any()


def register(cls, selector, metadata):
    types = {}
    for index, argument in metadata.get("arguments", {}).items():
        types[index] = argument.get("type", b"")
        if argument.get("type_modifier") == b"o" and not types[index]:
            types[index] = b"^@"
    result = metadata.get("retval", {}).get("type", b"")
    words = [result] + [types.get(i, b"") for i in range(2, 2 + selector.count(b":"))]
    text = " ".join((w.decode() if isinstance(w, bytes) else w) or "-" for w in words)
    seen.setdefault(selector.decode(), set()).add((cls.decode(), text))


fake = Any()
fake.registerMetaDataForSelector = register
sys.modules["objc"] = fake
source = open(sys.argv[1]).read()
names = set(re.findall(r'\{"([\w:]+)", "', open("../selectors.go").read()))
exec(compile(source, sys.argv[1], "exec"), {"__name__": "metadata"})
print("# Made by pyobjc.py: selector, class (NSObject: of a protocol), types (-: not told).")
for name in sorted(names & set(seen)):
    for cls, text in sorted(seen[name]):
        print(name, cls, text, sep="\t")
