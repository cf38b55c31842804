"""Deploys the template on an emulated AWS and plays the story over its HTTP API.

    drive.py <path of ministack> <path of relet> <folder for what is left behind>
"""

import secrets
import sys
import traceback
from pathlib import Path

import contract
import gaps
import poison
from api import Api, check
from cloud import Cloud, Failed, deploy, package, physical, until
from controller import Controller
from story import NODE, Story

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "infra" / "template.yaml"


def play(cloud, controller, secret, relet, folder):
    """All of it."""
    contract.run(cloud.endpoint, ROOT)
